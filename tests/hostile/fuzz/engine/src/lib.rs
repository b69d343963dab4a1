//! libFuzzer, called from within a test: it makes inputs by what code they reach.

use std::env;
use std::ffi::{c_char, c_int, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::OnceLock;

type Property = fn(&[u8]);

extern "C" {
    fn LLVMFuzzerRunDriver(
        argc: *mut c_int,
        argv: *mut *mut *mut c_char,
        callback: extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;
}

static PROPERTY: OnceLock<Property> = OnceLock::new();

/// What libfuzzer-sys links to, and nobody calls here.
///
/// # Safety
/// `data` is so many bytes.
#[no_mangle]
pub unsafe extern "C" fn rust_fuzzer_test_input(data: *const u8, size: usize) -> c_int {
    one(data, size)
}

extern "C" fn one(data: *const u8, size: usize) -> c_int {
    let data: &[u8] = if size == 0 {
        &[]
    } else {
        // SAFETY: libFuzzer passes so many bytes, which stay until this returns.
        unsafe { std::slice::from_raw_parts(data, size) }
    };
    let Some(property) = PROPERTY.get() else {
        return 0;
    };
    // libFuzzer keeps the input of what aborts.
    if catch_unwind(AssertUnwindSafe(|| property(data))).is_err() {
        std::process::abort();
    }
    0
}

/// Tries the property, with the arguments of libFuzzer in `RLOCK_FUZZ`. One process has one.
pub fn run(property: Property) {
    // The crate brings libFuzzer along; without a use it would not be linked.
    libfuzzer_sys::initialize as *const ();
    let _ = PROPERTY.set(property);
    let given = env::var("RLOCK_FUZZ").unwrap_or_default();
    let words = ["rlock"].into_iter().chain(given.split_whitespace());
    let words: Vec<CString> = words.filter_map(|word| CString::new(word).ok()).collect();
    let mut argv: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
    argv.push(std::ptr::null_mut());
    let mut argc = words.len() as c_int;
    let mut argv = argv.as_mut_ptr();
    // SAFETY: the strings and their array live until the driver returns, and it does not
    // write to them.
    let status = unsafe { LLVMFuzzerRunDriver(&mut argc, &mut argv, one) };
    assert_eq!(status, 0, "libFuzzer found something");
}
