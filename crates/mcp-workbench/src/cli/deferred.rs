//! Arguments of a command that are defined only when the command is used. Defining those of all commands would be most of
//! a start, and most of its memory.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id, builder::Resettable};

/// The arguments of a command.
pub(super) struct Deferred<T>(pub(super) T);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        command.defer(|command| define(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| define(command, T::augment_args_for_update))
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Adds the arguments of a command. It keeps its own description, which that of the arguments would replace.
fn define(command: Command, augment: fn(Command) -> Command) -> Command {
    let about = Resettable::from(command.get_about().cloned());
    let long_about = Resettable::from(command.get_long_about().cloned());
    augment(command).about(about).long_about(long_about)
}
