//! Rounds of questions in the modern era. The `requestState` identifies the round of a client, or, in rounds without
//! one, the keys of the responses do.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use serde_json::{json, value::RawValue};

use crate::{message::Request, script::Rounds};

/// The issued states.
#[derive(Debug, Default)]
pub(crate) struct States {
    issued: Mutex<IssuedStates>,
}

#[derive(Debug, Default)]
struct IssuedStates {
    count: u64,
    places: HashMap<String, Place>,
}

#[derive(Debug, Clone, Default)]
struct Place {
    /// The tool, prompt or resource that was asked for.
    subject: String,
    next: usize,
    /// The raw answers so far, round by round.
    answers: Vec<String>,
}

/// The way to handle a request.
#[derive(Debug)]
pub(crate) enum Step {
    /// Answer with this raw result, which asks.
    Ask(String),
    /// Answer with this raw error.
    Refuse(String),
    /// All was asked: the raw answers, round by round.
    Done(Vec<String>),
}

impl States {
    /// Decides how to handle a request.
    pub(crate) fn step(&self, request: &Request, rounds: &Rounds) -> Step {
        let subject = request
            .known
            .name
            .as_ref()
            .or(request.known.uri.as_ref())
            .cloned()
            .unwrap_or_default();
        match self.place(request, rounds, &subject) {
            Err(what) => Step::Refuse(json!({"code": -32602, "message": what}).to_string()),
            Ok(place) if place.next < rounds.rounds.len() => Step::Ask(self.ask(rounds, place)),
            Ok(place) => Step::Done(place.answers),
        }
    }

    fn place(
        &self,
        request: &Request,
        rounds: &Rounds,
        subject: &str,
    ) -> Result<Place, &'static str> {
        let responses = request.known.input_responses.as_deref();
        let answer = responses.map_or("null", RawValue::get).to_owned();
        if let Some(state) = &request.known.request_state {
            let issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
            let place = issued.places.get(state).cloned();
            let mut place = place
                .filter(|place| place.subject == subject)
                .ok_or("Unknown requestState")?;
            place.answers.push(answer);
            return Ok(place);
        }
        let mut place = Place {
            subject: subject.to_owned(),
            ..Place::default()
        };
        let Some(responses) = responses else {
            return Ok(place);
        };
        let keys = keys(responses);
        let round = rounds.rounds.iter().position(|round| {
            let asked = round.input_requests.as_deref().map(self::keys);
            let fits = asked.is_some_and(|asked| asked.iter().any(|key| keys.contains(key)));
            round.request_state.is_none() && fits
        });
        place.next = round.ok_or("requestState is missing")? + 1;
        place.answers.push(answer);
        Ok(place)
    }

    fn ask(&self, rounds: &Rounds, mut place: Place) -> String {
        let round = &rounds.rounds[place.next];
        let mut result = r#"{"resultType":"input_required""#.to_owned();
        if let Some(requests) = &round.input_requests {
            result.push_str(&format!(r#","inputRequests":{requests}"#));
        }
        if let Some(state) = &round.request_state {
            let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
            issued.count += 1;
            let state = state.replace("$N", &issued.count.to_string());
            result.push_str(&format!(r#","requestState":{}"#, json!(state)));
            place.next += 1;
            issued.places.insert(state, place);
        }
        result + "}"
    }
}

fn keys(object: &RawValue) -> Vec<String> {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(object.get()).unwrap_or_default();
    members.into_keys().collect()
}
