// The boxes of boxes.rs in jemalloc with Rust's prefix, called as the crate jemallocator does.
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

#[link(name = "jemalloc_pic", kind = "static")]
extern "C" {
    fn _rjem_malloc(size: usize) -> *mut c_void;
    fn _rjem_calloc(count: usize, size: usize) -> *mut c_void;
    fn _rjem_mallocx(size: usize, flags: i32) -> *mut c_void;
    fn _rjem_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn _rjem_rallocx(block: *mut c_void, size: usize, flags: i32) -> *mut c_void;
    fn _rjem_sdallocx(block: *mut c_void, size: usize, flags: i32);
}

const ALIGNED_AT_LEAST: usize = 16;
const ZEROED: i32 = 0x40;

struct Jemalloc;

fn flags_of(layout: &Layout) -> i32 {
    if layout.align() <= ALIGNED_AT_LEAST && layout.align() <= layout.size() {
        0
    } else {
        layout.align().trailing_zeros() as i32
    }
}

unsafe impl GlobalAlloc for Jemalloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match flags_of(&layout) {
            0 => _rjem_malloc(layout.size()) as *mut u8,
            flags => _rjem_mallocx(layout.size(), flags) as *mut u8,
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match flags_of(&layout) {
            0 => _rjem_calloc(1, layout.size()) as *mut u8,
            flags => _rjem_mallocx(layout.size(), flags | ZEROED) as *mut u8,
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match flags_of(&layout) {
            0 => _rjem_realloc(block as *mut c_void, size) as *mut u8,
            flags => _rjem_rallocx(block as *mut c_void, size, flags) as *mut u8,
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        _rjem_sdallocx(block as *mut c_void, layout.size(), flags_of(&layout));
    }
}

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

include!("boxes.rs");
