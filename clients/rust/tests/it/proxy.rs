//! A proxy that can cut, freeze and lose replies, and keeps what the clients say.

use std::sync::Arc;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Default)]
struct Rules {
    /// The server carries out the next request with this word; its reply is lost with the
    /// connection.
    cut: Arc<Mutex<Option<&'static str>>>,
    /// In all requests, the one in the place of the other.
    renamed: Arc<Mutex<Option<(&'static str, &'static str)>>>,
    asked: Arc<Mutex<String>>,
    /// The same, as it was read: what was written at once, or more.
    pieces: Arc<Mutex<Vec<String>>>,
}

pub struct Proxy {
    pub port: u16,
    rules: Rules,
    frozen: watch::Sender<bool>,
    /// Counted up to close all connections.
    closes: watch::Sender<u32>,
}

impl Proxy {
    pub async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let rules = Rules::default();
        let (frozen, closes) = (watch::Sender::new(false), watch::Sender::new(0));
        let (own, ice, close) = (rules.clone(), frozen.clone(), closes.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await;
                let Ok(server) = server else { continue };
                let (rules, ice, close) = (own.clone(), ice.subscribe(), close.subscribe());
                tokio::spawn(serve(client, server, rules, ice, close));
            }
        });
        Self {
            port,
            rules,
            frozen,
            closes,
        }
    }

    pub fn cut(&self, word: &'static str) {
        *self.rules.cut.lock().unwrap() = Some(word);
    }

    /// As if the server did not know this command.
    pub fn unknown(&self, word: &'static str, other: &'static str) {
        *self.rules.renamed.lock().unwrap() = Some((word, other));
    }

    /// All that clients have said, a word a line.
    pub fn asked(&self) -> String {
        let asked = self.rules.asked.lock().unwrap();
        let words = asked
            .split("\r\n")
            .filter(|word| !word.starts_with(['*', '$']));
        words.collect::<Vec<_>>().join("\n")
    }

    /// How often the second was in the same piece as the first, behind it.
    pub fn asked_at_once(&self, first: &str, second: &str) -> usize {
        let pieces = self.rules.pieces.lock().unwrap();
        let is_one = |piece: &&String| {
            let first = piece.find(first);
            first.is_some_and(|at| piece[at..].contains(second))
        };
        pieces.iter().filter(is_one).count()
    }

    pub fn close(&self) {
        self.closes.send_modify(|closes| *closes += 1);
    }

    pub fn freeze(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }
}

async fn serve(
    mut client: TcpStream,
    mut server: TcpStream,
    rules: Rules,
    mut ice: watch::Receiver<bool>,
    mut close: watch::Receiver<u32>,
) {
    close.mark_unchanged();
    let (mut asked, mut replied) = (vec![0; 65536], vec![0; 65536]);
    let mut losing = false;
    loop {
        // Nothing passes any more once it was told to freeze, or to close.
        tokio::select! {
            biased;
            _ = close.changed() => return,
            thawed = ice.wait_for(|frozen| !frozen) => if thawed.is_err() { return },
        }
        tokio::select! {
            biased;
            _ = close.changed() => return,
            _ = ice.changed() => {}
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let mut text = String::from_utf8_lossy(&asked[..length]).into_owned();
                let renamed = *rules.renamed.lock().unwrap();
                if let Some((word, other)) = renamed {
                    text = text.replace(word, other);
                }
                rules.asked.lock().unwrap().push_str(&text);
                rules.pieces.lock().unwrap().push(text.clone());
                if server.write_all(text.as_bytes()).await.is_err() { return }
                let mut cut = rules.cut.lock().unwrap();
                if cut.is_some_and(|word| text.contains(word)) {
                    *cut = None;
                    losing = true;
                }
            }
            read = server.read(&mut replied) => {
                let Ok(length @ 1..) = read else { return };
                if losing { return }
                if client.write_all(&replied[..length]).await.is_err() { return }
            }
        }
    }
}
