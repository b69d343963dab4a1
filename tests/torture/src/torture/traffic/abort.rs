//! A connection that ends by RST, as that of a machine that has lost its power.

use std::net::TcpStream;
use std::os::fd::AsRawFd;

pub fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let size = std::mem::size_of::<libc::linger>() as libc::socklen_t;
    let value: *const libc::linger = &linger;
    // SAFETY: the socket is open, and the option is as large as it is said to be.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            value.cast(),
            size,
        );
    }
}
