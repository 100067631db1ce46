//! Keys cost no allocation once the buffers have grown. In a binary of its own: it counts for the whole process.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use urlkey::{Dialect, Keyer};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // The counter may be gone while a thread ends; nobody looks at it then.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn keys_allocate_nothing_once_the_buffers_have_grown() {
    let urls = [
        "http://www.example.com/",
        "https://example.com:8443/a/b/c.html?z=1&y=2&x",
        "http://example.com/%7Euser/a%20b/../c//d/?q=%C3%BC&jsessionid=0123456789abcdef0123456789abcdef",
        "http://WWW2.Example.COM/(abcdefghijklmnopqrstuvwx)/page.aspx",
        "http://192.168.010.1:80/x",
        "urn:uuid:0-1-2",
    ];
    for dialect in [Dialect::Standard, Dialect::Ia] {
        let mut keyer = Keyer::new(dialect);
        let mut out = String::new();
        let mut round = || {
            for url in urls {
                out.clear();
                keyer.key_into(url, &mut out);
            }
        };
        round();
        let before = COUNT.get();
        round();
        assert_eq!(COUNT.get(), before, "{}", dialect.name());
    }
}
