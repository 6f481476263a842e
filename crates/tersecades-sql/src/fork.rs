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

/// The tables that a session has at a moment.
pub struct Tables(BTreeMap<String, Arc<Relation>>);

impl Session {
    /// A session with the same tables, options and kept streams.
    pub fn fork(&self) -> Session {
        Session {
            catalog: self.catalog.fork(),
            settings: self.settings.clone(),
            kept: Arc::clone(&self.kept),
        }
    }

    /// The tables there are.
    pub fn tables(&self) -> Tables {
        Tables(self.catalog.tables().clone())
    }

    /// Takes over the options of `fork`, and the tables that it has got since `before`.
    pub fn adopt(&mut self, fork: Session, before: &Tables) {
        let is_known = |name: &str, relation: &Arc<Relation>| {
            let known = before.0.get(name);
            known.is_some_and(|known| Arc::ptr_eq(known, relation))
        };
        for (name, relation) in fork.catalog.tables() {
            if !is_known(name, relation) {
                self.catalog.restore(name, Arc::clone(relation));
            }
        }
        self.catalog.reading = fork.catalog.reading;
        self.settings = RunSettings {
            interrupt: self.settings.interrupt.clone(),
            ..fork.settings
        };
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
