//! A hold that gives way is released, and asked for again. What comes of that is another hold here.

use std::collections::HashMap;

use rlock_torture::saw::{Ask, Told};
use serde_json::{json, Value};

use crate::hold::Hold;

/// The two requests that it stands for, or what it has said where nobody waited.
pub fn parts(ask: Ask) -> Vec<Ask> {
    if ask.what != "give_way" {
        return vec![ask];
    }
    let gave = ask.out["ok"]["gave"].as_bool();
    if gave == Some(false) {
        let out = json!({"ok": {"lost": null}});
        return vec![Ask {
            what: "state".into(),
            out,
            ..ask
        }];
    }
    // Where it failed nothing is known of the release.
    let out = if gave == Some(true) {
        json!({"ok": {}})
    } else {
        Value::Null
    };
    let release = Ask {
        what: "release".into(),
        reply: Some(ask.call),
        out,
        ..ask.clone()
    };
    let hold = ask.words["next"].as_str().unwrap_or_default().to_owned();
    let what = "acquire".into();
    vec![release, Ask { what, hold, ..ask }]
}

/// Of what their client knows by one name each event is that of the last hold that was asked for before it: a loss may be
/// said before the grant. That it is over when it gave way in vain is no news: who asked for that has the error.
pub fn tell(holds: &mut [Hold], told: Vec<Told>) {
    let mut all: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, hold) in holds.iter().enumerate() {
        let name = hold.name.split('~').next().unwrap_or_default();
        all.entry(name.to_owned()).or_default().push(at);
    }
    for event in told {
        let its = all.get(&event.hold).map(Vec::as_slice).unwrap_or_default();
        let last = its
            .iter()
            .rfind(|at| holds[**at].call <= event.at)
            .or(its.first());
        let Some(hold) = last.and_then(|at| holds.get_mut(*at)) else {
            continue;
        };
        let in_vain = hold.gave_way && event.reason == "released";
        if !in_vain {
            hold.events.push(event);
        }
    }
}
