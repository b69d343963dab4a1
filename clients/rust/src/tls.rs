//! What TLS by rustls needs.

/// redis-rs takes the cryptography that the process has chosen for rustls, and panics or fails
/// where nobody has. The program's own choice stays, if it made it before its first request.
pub fn choose_provider() {
    #[cfg(feature = "tls-rustls")]
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may be faster.
        _ = rustls::crypto::ring::default_provider().install_default();
    }
}
