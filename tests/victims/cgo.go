// Memory that Go asks C's malloc for.  Obeys as builds.c does.
package main

// #include <stdlib.h>
// #include <string.h>
// static void *get(size_t size) { return malloc(size); }
// __attribute__((noinline)) static void *deeper(size_t size, int depth)
// {
//	char *block = depth > 0 ? deeper(size, depth - 1) : calloc(2, size / 2);
//	block[0] = 1;
//	return block;
// }
// static void *grow(size_t size) { return realloc(malloc(10), size); }
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

const text = "strings of Go's are copied"
const blocks, bytes = 4, 500 + 600 + 700 + len(text) + 1

func keep(kept []unsafe.Pointer) []unsafe.Pointer {
	return append(kept, unsafe.Pointer(C.get(500)), unsafe.Pointer(C.deeper(600, 4)), unsafe.Pointer(C.grow(700)),
		unsafe.Pointer(C.CString(text)))
}

func main() {
	var kept []unsafe.Pointer
	command := make([]byte, 1)

	fmt.Println("R")
	for {
		n, err := os.Stdin.Read(command)
		if n != 1 || err != nil || command[0] == 'q' {
			os.Exit(0)
		}
		switch command[0] {
		case 'g':
			kept = keep(kept)
		case 'f':
			for _, block := range kept {
				C.free(block)
			}
			kept = kept[:0]
		}
		fmt.Printf("blocks=%d bytes=%d\n", len(kept), bytes*len(kept)/blocks)
	}
}
