//! Sticky locks, and their uses. The body of a use does what it is asked for until it is told to end.

use std::pin::Pin;

use rlock_client::{Error, Reason, Sticky, Use};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::world::{Answer, World, argument, duration, failed, text};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

pub enum Ask {
    Token(oneshot::Sender<Answer>),
    /// Another use, begun in here.
    Within(Task),
    End {
        fails: bool,
    },
}

type End = Result<Result<(), Value>, Error>;

/// A use, as other requests know it.
pub struct Using {
    asks: mpsc::UnboundedSender<Ask>,
    end: Option<oneshot::Receiver<End>>,
    cancel: Option<oneshot::Sender<()>>,
    lost: Option<Reason>,
}

impl World {
    pub fn sticky(&self, request: &Value) -> Result<(), Value> {
        let mut make = self.locks(request)?.sticky(text(request, "key"));
        if let Some(idle) = duration(request, "idle") {
            make = make.idle(idle);
        }
        if let Some(wait) = duration(request, "wait") {
            make = make.wait(wait);
        }
        if let Some(lease) = duration(request, "lease") {
            make = make.lease(lease);
        }
        let sticky = make.build().map_err(failed)?;
        let name = text(request, "sticky");
        self.names().stickies.insert(name, sticky);
        Ok(())
    }

    pub fn sticky_of(&self, request: &Value) -> Result<Sticky, Value> {
        let sticky = self.names().stickies.get(&text(request, "sticky")).cloned();
        sticky.ok_or_else(|| argument("no sticky lock of this name"))
    }

    pub async fn use_(&self, request: &Value) -> Answer {
        let (sticky, name) = (self.sticky_of(request)?, text(request, "use"));
        let asks_token = request["token"] == true;
        let (asks, asked) = mpsc::unbounded_channel();
        let (begins, begun) = oneshot::channel();
        let (ends, end) = oneshot::channel();
        let (cancel, cancelled) = oneshot::channel();
        let using = Using {
            asks,
            end: Some(end),
            cancel: Some(cancel),
            lost: None,
        };
        self.names().uses.insert(name.clone(), using);
        let (world, called) = (self.clone(), name.clone());
        let task: Task = Box::pin(async move {
            let body = |used: Use| async move {
                world.note_loss(called, used.lost());
                body(used, asked, begins, asks_token).await
            };
            tokio::select! {
                end = sticky.run(body) => { _ = ends.send(end); }
                Ok(()) = cancelled => {}
            }
        });
        match request["within"].as_str() {
            Some(other) => self.ask_use(other, Ask::Within(task))?,
            None => _ = tokio::spawn(task),
        }
        match begun.await {
            Ok(answer) => Ok(answer),
            // It has ended before it could begin.
            Err(_) => match self.end_of(&name).await {
                Some(end) => ended(end),
                None => Err(json!({"error": "cancelled", "text": ""})),
            },
        }
    }

    fn note_loss(&self, name: String, lost: impl Future<Output = Reason> + Send + 'static) {
        let world = self.clone();
        tokio::spawn(async move {
            let reason = lost.await;
            if let Some(using) = world.names().uses.get_mut(&name) {
                using.lost = Some(reason);
            }
        });
    }

    fn ask_use(&self, name: &str, ask: Ask) -> Result<(), Value> {
        let names = self.names();
        let using = names.uses.get(name);
        let using = using.ok_or_else(|| argument("no use of this name"))?;
        // One that has lost the lock asks nothing any more.
        _ = using.asks.send(ask);
        Ok(())
    }

    async fn end_of(&self, name: &str) -> Option<End> {
        let end = self.names().uses.get_mut(name)?.end.take()?;
        end.await.ok()
    }

    pub async fn use_token(&self, request: &Value) -> Answer {
        let (to, answer) = oneshot::channel();
        let name = text(request, "use");
        self.ask_use(&name, Ask::Token(to))?;
        match answer.await {
            Ok(answer) => answer,
            // The body was dropped, for the lock was lost.
            Err(_) => {
                let lost = self.names().uses.get(&name).and_then(|using| using.lost);
                Err(failed(Error::Lost(lost.unwrap_or(Reason::Other))))
            }
        }
    }

    pub fn use_state(&self, request: &Value) -> Answer {
        let names = self.names();
        let using = names.uses.get(&text(request, "use"));
        let lost = using.and_then(|using| using.lost);
        Ok(json!({"lost": lost.map(Reason::as_str)}))
    }

    pub async fn use_end(&self, request: &Value) -> Answer {
        let (name, fails) = (text(request, "use"), request["fail"] == true);
        self.ask_use(&name, Ask::End { fails })?;
        match self.end_of(&name).await {
            Some(end) => ended(end),
            None => Err(argument("it has ended")),
        }
    }

    pub fn use_cancel(&self, request: &Value) -> Result<(), Value> {
        let mut names = self.names();
        let using = names.uses.get_mut(&text(request, "use"));
        let cancel = using.and_then(|using| using.cancel.take());
        let cancel = cancel.ok_or_else(|| argument("no such use"))?;
        _ = cancel.send(());
        Ok(())
    }

    pub async fn use_many(&self, request: &Value) -> Answer {
        let sticky = self.sticky_of(request)?;
        let times = request["times"].as_u64().unwrap_or(0);
        let asks = request["token"] == true;
        let (mut last, mut rising) = (0, true);
        for _ in 0..times {
            let token = sticky.run(|used| async move {
                match asks {
                    true => used.token().await.map(Some),
                    false => Ok(None),
                }
            });
            if let Some(token) = token.await.and_then(|token| token).map_err(failed)? {
                rising &= token > last;
                last = token;
            }
        }
        let mut answer = json!({"done": times});
        if asks {
            answer["rising"] = json!(rising);
        }
        Ok(answer)
    }
}

fn ended(end: End) -> Answer {
    end.map_err(failed)?.map(|()| json!({}))
}

async fn body(
    used: Use,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    begins: oneshot::Sender<Value>,
    asks_token: bool,
) -> Result<(), Value> {
    let mut answer = json!({"owner": used.owner()});
    if asks_token {
        answer["token"] = json!(used.token().await.map_err(failed)?);
    }
    _ = begins.send(answer);
    let mut within: Vec<Task> = Vec::new();
    loop {
        let ask = std::future::poll_fn(|context| {
            within.retain_mut(|task| task.as_mut().poll(context).is_pending());
            asked.poll_recv(context)
        });
        match ask.await {
            Some(Ask::Token(to)) => {
                let token = used.token().await.map_err(failed);
                _ = to.send(token.map(|token| json!({"token": token})));
            }
            Some(Ask::Within(task)) => within.push(task),
            Some(Ask::End { fails: true }) => {
                return Err(json!({"error": "other", "text": "the body's own"}));
            }
            Some(Ask::End { fails: false }) | None => return Ok(()),
        }
    }
}
