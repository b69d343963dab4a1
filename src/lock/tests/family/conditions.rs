//! What RELEASE and FORCE ask of holds, in the words of the core and of the model.

use super::model::{self, Place};
use super::ops::{Aim, Only};
use super::world::World;
use crate::lock::{self, Token};

/// Nothing is said: there is no such token, or what is to come of it is left open.
pub struct LeftOut;

impl World {
    pub fn only(
        &self,
        place: Place,
        only: Option<Only>,
    ) -> Result<(Option<lock::Only>, Option<model::Only>), LeftOut> {
        Ok(match only {
            None => (None, None),
            Some(Only::Held) => (Some(lock::Only::Held), Some(model::Only::Held)),
            Some(Only::Token(which)) => {
                let (token, number) = self.some_token(place, which)?;
                let said = lock::Only::Token(number);
                (Some(said), Some(model::Only::Token(token)))
            }
        })
    }

    pub fn aim(
        &self,
        place: Place,
        aim: Option<Aim>,
    ) -> Result<(Option<lock::Aim<'static>>, Option<model::Aim>), LeftOut> {
        Ok(match aim {
            None => (None, None),
            Some(Aim::Owner(owner)) => {
                let said = lock::Aim::Owner(owner.as_bytes().into());
                (Some(said), Some(model::Aim::Owner(owner)))
            }
            Some(Aim::Token(which)) => {
                let (token, number) = self.some_token(place, which)?;
                let said = lock::Aim::Token(number);
                (Some(said), Some(model::Aim::Token(token)))
            }
        })
    }

    /// One of the tokens that were given lately, or on this lock: the model's, and the core's.
    fn some_token(&self, place: Place, which: usize) -> Result<(model::Token, Token), LeftOut> {
        let last = self.model.made_tokens;
        let lately = (last.saturating_sub(4)..=last).rev();
        let all: Vec<_> = self.model.tokens_at(place).chain(lately).collect();
        let token = all[which % all.len()];
        let number = self.tokens.known(token).ok_or(LeftOut)?;
        if self.is_in_the_middle(place, token) {
            return Err(LeftOut);
        }
        Ok((token, Token(number)))
    }

    /// A token of the third and more of the upgrades of one reader, of which the core
    /// remembers the first and the newest.
    fn is_in_the_middle(&self, place: Place, token: model::Token) -> bool {
        let mut given = self.model.given.iter().filter(|((at, ..), _)| *at == place);
        given.any(|(_, tokens)| {
            let ends = tokens.first().zip(tokens.last());
            ends.is_some_and(|(first, last)| *first < token && token < *last)
        })
    }
}
