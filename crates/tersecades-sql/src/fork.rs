//! Sessions that several callers share: each statement runs in a copy, which gives back what it
//! created, so that none waits for another's.

use std::collections::BTreeMap;
use std::sync::Arc;

use tersecades_columnar::error::{Error, Result};
use tersecades_engine::stream::Stream;

use crate::answer::Answer;
use crate::catalog::{FindTable, Relation};
use crate::command::text_results;
use crate::parse::{self, Command};
use crate::session::{RunSettings, Session};

/// The tables and options that a session has at a moment.
pub struct Tables {
    tables: BTreeMap<String, Arc<Relation>>,
    settings: RunSettings,
    batch_rows: usize,
}

impl Session {
    /// A session with the same tables, options and kept streams.
    pub fn fork(&self) -> Session {
        Session {
            catalog: self.catalog.fork(),
            settings: self.settings.clone(),
            kept: Arc::clone(&self.kept),
        }
    }

    /// The tables there are, and the options.
    pub fn tables(&self) -> Tables {
        Tables {
            tables: self.catalog.tables().clone(),
            settings: self.settings.clone(),
            batch_rows: self.catalog.reading.batch_rows,
        }
    }

    /// Takes over the options and tables that `fork` has got since `before`: others may have been
    /// set here meanwhile.
    pub fn adopt(&mut self, fork: Session, before: &Tables) {
        let is_known = |name: &str, relation: &Arc<Relation>| {
            let known = before.tables.get(name);
            known.is_some_and(|known| Arc::ptr_eq(known, relation))
        };
        for (name, relation) in fork.catalog.tables() {
            if !is_known(name, relation) {
                self.catalog.restore(name, Arc::clone(relation));
            }
        }
        let batch_rows = fork.catalog.reading.batch_rows;
        take_over(
            &mut self.catalog.reading.batch_rows,
            &before.batch_rows,
            batch_rows,
        );
        let RunSettings {
            threads,
            memory_limit_bytes,
            on_limit,
            tier,
            reads,
            layout,
            interrupt: _,
        } = fork.settings;
        let (own, known) = (&mut self.settings, &before.settings);
        take_over(&mut own.threads, &known.threads, threads);
        take_over(
            &mut own.memory_limit_bytes,
            &known.memory_limit_bytes,
            memory_limit_bytes,
        );
        take_over(&mut own.on_limit, &known.on_limit, on_limit);
        take_over(&mut own.tier, &known.tier, tier);
        take_over(&mut own.reads, &known.reads, reads);
        take_over(&mut own.layout, &known.layout, layout);
    }

    /// Who is asked for tables by names that are none of the session's; each name that a statement
    /// reads is asked for once.
    pub fn find_tables_with(&mut self, find: FindTable) {
        self.catalog.asked = Some(find);
    }

    /// Runs the statements of `text`; the last is handed out as a stream, which runs when it is
    /// read if it is a query. A statement without rows gives a row that says what was done.
    ///
    /// # Errors
    /// What parsing, planning and running say; `InvalidArgument` when an earlier statement gives
    /// rows, which nobody would see.
    pub fn last_of(&mut self, text: &str) -> Result<Stream> {
        let mut commands = parse::parse(text)?;
        let Some(last) = commands.pop() else {
            return Err(Error::invalid("there is no statement").hint("write SELECT ..."));
        };
        if commands.iter().any(Command::gives_rows) {
            return Err(Error::invalid(
                "a statement before the last gives rows that nobody would see",
            )
            .hint("give each query by itself"));
        }
        for command in commands {
            self.run_command(command)?;
        }
        self.catalog.look_anew();
        let answer = match last {
            Command::Query(asked) if asked.clauses.late_into.is_none() => return self.lower(asked),
            command => self.run_command(command)?,
        };
        let results = match answer {
            Answer::Rows(results) => results,
            Answer::Done(done) => text_results([("done", vec![done])])?,
        };
        let schema = results.schema();
        let batches = results.collect::<Result<Vec<_>>>()?;
        Ok(Stream::from_batches(schema, batches))
    }
}

/// Sets `own` to `set`, where that is no longer what it was `before`.
fn take_over<T: PartialEq>(own: &mut T, before: &T, set: T) {
    if set != *before {
        *own = set;
    }
}

#[cfg(test)]
mod tests {
    use tersecades_columnar::goal::Tier;

    use super::*;

    #[test]
    fn options_that_two_copies_set_at_once_are_both_kept() {
        let mut session = Session::default();
        let mut forks = [session.fork(), session.fork()];
        let before = forks.each_ref().map(Session::tables);
        forks[0].set("threads", "3").unwrap();
        forks[0].set("batch_rows", "77").unwrap();
        forks[1].set("tier", "cold").unwrap();
        for (fork, before) in forks.into_iter().zip(&before) {
            session.adopt(fork, before);
        }
        assert_eq!(session.settings.threads, 3);
        assert_eq!(session.catalog.reading.batch_rows, 77);
        assert_eq!(session.settings.tier, Some(Tier::Cold));
    }
}
