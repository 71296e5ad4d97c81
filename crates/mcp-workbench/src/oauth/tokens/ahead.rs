//! The time of a refresh before a token expires, and the back-off after a failure.

use std::time::Duration;

use crate::private_files;

/// A token with a shorter lifetime is refreshed when it is needed; else refreshes would never stop.
const SHORTEST_LIFE: Duration = Duration::from_secs(10);
/// A token is refreshed at least this long before it expires, if its lifetime is long enough.
const MARGIN: Duration = Duration::from_mins(1);
/// The back-off after the first failure, and its upper bound.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Returns the delay of the refresh of a token with this lifetime, of which so much is left; `None` if the token is
/// refreshed only when it is needed. `chance`, from 0 to 255, keeps many workbenches from refreshing at once.
pub(super) fn delay(life: Duration, left: Duration, chance: u8) -> Option<Duration> {
    if life < SHORTEST_LIFE {
        return None;
    }
    // A minute before the end, but not in the first half of a short life. In any case at four fifths of the life, and
    // by chance up to a tenth of it earlier.
    let before_end = life.saturating_sub(MARGIN).max(life / 2);
    let at = (life / 5 * 4)
        .min(before_end)
        .saturating_sub(life / 10 * u32::from(chance) / 255);
    let age = life.saturating_sub(left);
    Some(at.saturating_sub(age))
}

/// Returns the back-off after so many failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

pub(super) fn chance() -> u8 {
    private_files::random::<1>()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_refreshed_ahead_but_not_twice_in_a_row() {
        let seconds = Duration::from_secs;
        let cases = [
            (3600, 3600, Some(2880)),
            (3600, 720, Some(0)),
            (3600, 10, Some(0)),
            (200, 200, Some(140)),
            (100, 100, Some(50)),
            (30, 30, Some(15)),
            (10, 10, Some(5)),
            (9, 9, None),
            (0, 0, None),
        ];
        for (life, left, expected) in cases {
            let found = delay(seconds(life), seconds(left), 0);
            assert_eq!(found, expected.map(seconds), "{life} {left}");
        }
        // Fresh tokens have time left, whatever the chance.
        for life in 10..5000 {
            let found = delay(seconds(life), seconds(life), 255).unwrap();
            assert!(found >= seconds(life) * 2 / 5, "{life}");
        }
    }

    #[test]
    fn pauses_grow_and_stop_growing() {
        let pauses = [0, 1, 2, 3, 7, 100].map(|it| pause(it).as_secs());
        assert_eq!(pauses, [1, 1, 2, 4, 60, 60]);
    }
}
