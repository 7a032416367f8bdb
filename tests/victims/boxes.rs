// Boxes and vectors of Rust's standard library, kept and dropped.  Obeys as builds.c does.
use std::io::{Read, Write};

const ROUNDS_MAX: usize = 1000;

#[inline(never)]
fn keep(kept: &mut Vec<(Box<[u64; 100]>, Vec<u8>)>) {
    let mut bytes: Vec<u8> = Vec::with_capacity(10);
    bytes.reserve_exact(300);
    kept.push((Box::new([7; 100]), bytes));
}

fn main() {
    let mut kept = Vec::with_capacity(ROUNDS_MAX);
    let mut command = [0u8; 1];
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    writeln!(output, "R").unwrap();
    while input.read(&mut command).unwrap() == 1 && command[0] != b'q' {
        match command[0] {
            b'g' => keep(&mut kept),
            b'f' => kept.clear(),
            _ => {}
        }
        writeln!(output, "blocks={} bytes={}", 2 * kept.len(), (800 + 300) * kept.len()).unwrap();
    }
    drop(output);
    std::process::exit(0);
}
