// Memory that Go asks C's malloc for.  Obeys as builds.c does.
package main

// #include <stdlib.h>
// static void *get(size_t size) { return malloc(size); }
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

func keep(kept []unsafe.Pointer) []unsafe.Pointer {
	return append(kept, unsafe.Pointer(C.get(500)))
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
		fmt.Printf("blocks=%d bytes=%d\n", len(kept), 500*len(kept))
	}
}
