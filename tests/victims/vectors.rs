// A Vec that grows and a String that is built: nothing is asked for but by Rust's library.
// Built by the test that watches it.
use std::io::{Read, Write};

#[inline(never)]
fn grow(kept: &mut Vec<Vec<u64>>) {
    let mut numbers = Vec::new();
    for i in 0..4096u64 {
        numbers.push(i); // growing Vec
    }
    kept.push(numbers);
}

#[inline(never)]
fn build(kept: &mut Vec<String>) {
    for i in 0..100 {
        kept.push("x".repeat(1000 + i)); // built String
    }
}

fn main() {
    let mut command = [0u8; 1];
    let mut vectors = Vec::new();
    let mut strings = Vec::with_capacity(100000);
    std::io::stdout().write_all(b"R\n").unwrap();
    while std::io::stdin().read_exact(&mut command).is_ok() && command[0] != b'q' {
        grow(&mut vectors);
        build(&mut strings);
        std::io::stdout().write_all(b"done=1\n").unwrap();
    }
}
