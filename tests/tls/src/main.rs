//! tunnel CA PORT LISTEN CONNECT: what connects to the port at the address LISTEN goes by TLS to
//! the same port at CONNECT, whose certificate CA has signed. It ends with the process that
//! started it, and listens when the server does.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A server that does not start, or was killed before this one could say that it ends with it.
const PATIENCE: Duration = Duration::from_secs(60);

const USAGE: &str = "usage: tunnel CA PORT LISTEN CONNECT";

fn main() -> Outcome<()> {
    end_with_parent();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(serve())
}

/// The server takes the place of the process that started this one: a signal to it, also one
/// that it cannot catch, means this one too.
fn end_with_parent() {
    // SAFETY: takes no pointer.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

async fn serve() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [ca, port, listen, connect] = &words[..] else {
        return Err(USAGE.into());
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca)?)?;
    let config = ClientConfig::builder().with_root_certificates(roots);
    let tls = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let to = SocketAddr::new(connect.parse()?, port.parse()?);
    let began = Instant::now();
    while let Err(error) = TcpStream::connect(to).await {
        if began.elapsed() > PATIENCE {
            return Err(error.into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let listener = TcpListener::bind((listen.as_str(), to.port())).await?;
    loop {
        let (client, _) = listener.accept().await?;
        tokio::spawn(forward(tls.clone(), client, to));
    }
}

/// Until one of the two closes, or the server cannot be reached: then both are closed.
async fn forward(tls: TlsConnector, mut client: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut server = tls.connect(ServerName::from(to.ip()), server).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
