// What Rust's standard library makes, kept and dropped, by two threads.  Obeys as builds.c does.
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, Barrier, Mutex};

const ROUNDS_MAX: usize = 1000;
const BLOCKS: usize = 11;
const BYTES: usize = 800 + 300 + 27 + 128 * 4 + 2000 + 256 + 48 + 24 + 40 + 9 * 8 + 64;

#[repr(align(128))]
struct Wide {
    _bytes: [u8; 256],
}

struct Round {
    _boxed: Box<[u64; 100]>,
    _bytes: Vec<u8>,
    _text: String,
    _grown: Vec<u32>,
    _zeroed: Vec<u8>,
    _wide: Box<Wide>,
    _called: Box<dyn Fn() -> usize + Send>,
    _shared: Arc<u64>,
    _deep: Box<[u8; 40]>,
    _sorted: Vec<Box<[u8; 64]>>,
}

type Kept = Mutex<Vec<Round>>;

#[inline(never)]
fn descend(depth: usize) -> Box<[u8; 40]> {
    if depth == 0 {
        return Box::new([1; 40]);
    }
    let mut found = descend(depth - 1);
    found[depth] = 2;
    found
}

// Called back by the library, which calls it back in turn.
#[inline(never)]
fn from_below() -> Vec<Box<[u8; 64]>> {
    let mut numbers = [2, 1];
    let mut found: Vec<Box<[u8; 64]>> = Vec::with_capacity(9);
    numbers.sort_by(|a, b| {
        if found.is_empty() {
            found.push(Box::new([3; 64]));
        }
        a.cmp(b)
    });
    found
}

#[inline(never)]
fn keep(kept: &Kept) {
    let mut bytes: Vec<u8> = Vec::with_capacity(10);
    let mut grown = Vec::new();
    let captured = [bytes.len() + 1; 6];
    bytes.reserve_exact(300);
    for i in 0..100u32 {
        grown.push(i);
    }
    let round = Round {
        _boxed: Box::new([7; 100]),
        _bytes: bytes,
        _text: String::from("strings of Rust, kept, too!"),
        _grown: grown,
        _zeroed: vec![0; 2000],
        _wide: Box::new(Wide { _bytes: [1; 256] }),
        _called: Box::new(move || captured.iter().sum()),
        _shared: Arc::new(4),
        _deep: descend(5),
        _sorted: from_below(),
    };
    kept.lock().unwrap().push(round);
    let mut freed = BTreeMap::new();
    for i in 0..5 {
        freed.insert(i, i);
    }
}

fn work(kept: Arc<Kept>, begin: Arc<Barrier>, done: Arc<Barrier>) {
    loop {
        begin.wait();
        keep(&kept);
        done.wait();
    }
}

fn main() {
    let kept = Arc::new(Mutex::new(Vec::with_capacity(ROUNDS_MAX)));
    let (begin, done) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let others = (kept.clone(), begin.clone(), done.clone());
    std::thread::spawn(move || work(others.0, others.1, others.2));
    let mut command = [0u8; 1];
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    writeln!(output, "R").unwrap();
    while input.read(&mut command).unwrap() == 1 && command[0] != b'q' {
        match command[0] {
            b'g' => {
                keep(&kept);
                begin.wait();
                done.wait();
            }
            b'f' => kept.lock().unwrap().clear(),
            _ => {}
        }
        let rounds = kept.lock().unwrap().len();
        writeln!(output, "blocks={} bytes={}", BLOCKS * rounds, BYTES * rounds).unwrap();
    }
    drop(output);
    std::process::exit(0);
}
