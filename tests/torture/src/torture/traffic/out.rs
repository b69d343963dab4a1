//! Replies as they are recorded.

use rlock_torture::history::{Out, View};

use crate::resp::Value;

pub fn of(args: &[String], value: Value) -> Out {
    match value {
        Value::Int(number) => Out::Int(number),
        Value::Null => Out::Null,
        Value::Error(text) => Out::Error(text),
        Value::Simple(text) | Value::Text(text) => Out::Text(text),
        value if args[0] == "RLOCK.INFO" => match view(&value) {
            Some(view) => Out::View(view),
            None => Out::Other(format!("{value:?}")),
        },
        value if args[0] == "RLOCK.LIST" => match list(&value) {
            Some(holders) => Out::List(holders.0 && args.len() == 3, holders.1),
            None => Out::Other(format!("{value:?}")),
        },
        value @ (Value::Array(_) | Value::Push(_)) => match args[0].as_str() {
            word if word.ends_with("SUBSCRIBE") || word == "HELLO" => Out::Text("OK".to_owned()),
            "RLOCK.WAITERS" | "RLOCK.TOP" => Out::Text(format!("{}", value.array().len())),
            _ => Out::Other(format!("{value:?}")),
        },
    }
}

fn view(value: &Value) -> Option<View> {
    let mode = value.get("mode")?.text()?.to_owned();
    let Value::Int(waiters) = value.get("waiters")? else {
        return None;
    };
    let holders = value.get("holders")?.array().iter();
    let holders = holders.map(|holder| Some(holder.get("owner")?.text()?.to_owned()));
    Some(View {
        mode,
        holders: holders.collect::<Option<_>>()?,
        waiters: *waiters,
    })
}

/// Whether the cursor says that this was all, and who holds what.
fn list(value: &Value) -> Option<(bool, Vec<(String, String)>)> {
    let [cursor, holders] = value.array() else {
        return None;
    };
    let text = |holder: &Value, name| Some(holder.get(name)?.text()?.to_owned());
    let holders = holders.array().iter();
    let holders = holders.map(|one| Some((text(one, "key")?, text(one, "owner")?)));
    Some((cursor.text()? == "0", holders.collect::<Option<_>>()?))
}
