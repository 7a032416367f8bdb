/* Rows of statistics as interned tables, there and back (type RowTables of the interface): what both ways have in common. */
#ifndef ALLOCWATCH_VARLINK_CODEC_ROWS_H
#define ALLOCWATCH_VARLINK_CODEC_ROWS_H

enum { FLAG_INLINED = 1, FLAG_HAS_LINE = 2 };

#define FRAME_COLUMNS 7
#define ROW_COLUMNS 5            /* before its frames */

#endif
