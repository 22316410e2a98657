//! The login name of the account that this process runs as.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ptr;

/// The name in the system's database of accounts; `None` where the account has none.
pub(super) fn login_name() -> Option<String> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = ptr::null_mut();
    let mut buffer: Vec<c_char> = vec![0; 16 * 1024];
    // SAFETY: every pointer leads to memory of this function, and the buffer's length is its own.
    let status =
        unsafe { libc::getpwuid_r(libc::geteuid(), entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found) };
    if status != 0 || found.is_null() {
        return None;
    }
    // SAFETY: where an entry was found it is written, and its name is a C string in the buffer.
    let name = unsafe { CStr::from_ptr(entry.assume_init_ref().pw_name) };
    name.to_str().ok().filter(|name| !name.is_empty()).map(str::to_owned)
}
