//! Stretches of text that threads read ahead, each by one of them.
//!
//! ```text
//! the source   whole lines, unread ─▶ job ─▶ thread: records ─▶ cells ─▶ batch
//!              batches, in the order of the text ◀─────────────────────────┘
//! ```

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use super::{BadRow, Columns, Next, TextFormat, TextRecord};
use crate::source::guard::guard;

/// What a stretch holds.
#[derive(Debug)]
pub(super) struct Stretch {
    /// Its rows, where there are any.
    pub(super) batch: Option<RecordBatch>,
    /// Those that do not fit: line, original bytes, and why.
    pub(super) bad: Vec<(u64, Vec<u8>, BadRow)>,
}

/// A stretch to be read, and where what it holds goes.
type Job<F> = (F, SyncSender<Result<Stretch>>);

/// Threads that read, and the stretches under way.
pub(super) struct Ahead<F> {
    jobs: Option<Sender<Job<F>>>,
    threads: Vec<JoinHandle<()>>,
    /// The next one first.
    stretches: VecDeque<Receiver<Result<Stretch>>>,
}

impl<F: TextFormat + 'static> Ahead<F> {
    /// Starts `threads` threads that read rows of `schema`; where `stops`, a stretch ends with its
    /// first bad row.
    ///
    /// # Errors
    /// `Io` when the system starts no more threads.
    pub(super) fn start(threads: usize, schema: &SchemaRef, stops: bool) -> Result<Self> {
        let (sender, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        let mut ahead = Ahead {
            jobs: Some(sender),
            threads: Vec::new(),
            stretches: VecDeque::new(),
        };
        for _ in 0..threads {
            let jobs = Arc::clone(&jobs);
            let schema = Arc::clone(schema);
            let thread = thread::Builder::new().name("tersecades-text".to_owned());
            let work = move || work_off(&schema, stops, &jobs);
            ahead.threads.push(thread.spawn(work)?);
        }
        Ok(ahead)
    }

    /// Whether another stretch may begin to be read: one for each thread, and one that is done.
    pub(super) fn has_room(&self) -> bool {
        self.stretches.len() <= self.threads.len()
    }

    /// Has a stretch read.
    pub(super) fn push(&mut self, stretch: F) {
        let (sender, read) = sync_channel(1);
        let sent = self.jobs.as_ref().map(|jobs| jobs.send((stretch, sender)));
        // Without threads nobody sends either, which the one who takes the stretches is told.
        drop(sent);
        self.stretches.push_back(read);
    }

    /// The first of the stretches that were pushed, or `None` where there are none.
    ///
    /// # Errors
    /// What reading it says; `Internal` when its thread is gone.
    pub(super) fn next(&mut self) -> Result<Option<Stretch>> {
        let Some(first) = self.stretches.pop_front() else {
            return Ok(None);
        };
        let stopped = |_| Error::internal("a thread that read text has stopped");
        first.recv().map_err(stopped)?.map(Some)
    }
}

impl<F> Drop for Ahead<F> {
    fn drop(&mut self) {
        self.jobs = None;
        self.stretches.clear();
        for thread in self.threads.drain(..) {
            // It cannot have panicked outside of its guard.
            let _ = thread.join();
        }
    }
}

/// Reads stretches as long as there are any.
fn work_off<F: TextFormat>(schema: &SchemaRef, stops: bool, jobs: &Mutex<Receiver<Job<F>>>) {
    let next = || {
        let jobs = jobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        jobs.recv()
    };
    while let Ok((stretch, to)) = next() {
        let read = guard("text", || read(stretch, schema, stops));
        // Whoever has gone does not want to know.
        let _ = to.send(read);
    }
}

fn read<F: TextFormat>(mut stretch: F, schema: &SchemaRef, stops: bool) -> Result<Stretch> {
    let mut columns = Columns::new(schema);
    let mut bad = Vec::new();
    let mut record = F::Record::default();
    while (bad.is_empty() || !stops) && stretch.read(&mut record)? == Next::Record {
        if let Err(row) = columns.push(&mut stretch, &record)? {
            bad.push((record.line(), record.original().to_vec(), row));
        }
    }
    let batch = columns.finish()?;
    Ok(Stretch { batch, bad })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use arrow_array::RecordBatch;
    use arrow_cast::display::array_value_to_string;
    use arrow_select::concat::concat_batches;

    use crate::source::tests::next_random;
    use crate::source::{OnError, RejectedRow, SourceOptions, open};

    /// The rows of a file read by `threads` threads, those left out, and the error at the end.
    fn read(
        path: &Path,
        threads: usize,
        on_error: OnError,
    ) -> (Option<RecordBatch>, Vec<RejectedRow>, Option<String>) {
        let mut options = SourceOptions {
            batch_rows: 5,
            on_error,
            threads: Some(threads),
            ..SourceOptions::default()
        };
        options.csv.infer_rows = 3;
        let mut source = match open(path, &options) {
            Ok(source) => source,
            Err(error) => return (None, Vec::new(), Some(error.to_string())),
        };
        let (mut batches, mut error) = (Vec::new(), None);
        loop {
            match source.next() {
                Ok(Some(batch)) => batches.push(batch),
                Ok(None) => break,
                Err(found) => {
                    error = Some(found.to_string());
                    break;
                }
            }
        }
        // Dictionaries are as different as the batches are.
        let rows = concat_batches(&source.schema(), &batches).unwrap();
        (Some(rows), source.rejected().kept.clone(), error)
    }

    fn shown(rows: &Option<RecordBatch>) -> Vec<String> {
        let rows = rows.as_ref().unwrap();
        let text = |row: usize| {
            let columns = rows.columns().iter();
            let texts = columns.map(|column| array_value_to_string(column, row).unwrap());
            texts.collect::<Vec<_>>().join("|")
        };
        (0..rows.num_rows()).map(text).collect()
    }

    fn compare(name: &str, text: impl Fn(&mut dyn FnMut(usize) -> usize) -> String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut state = 5u64;
        let mut below = |bound: usize| next_random(&mut state) % bound;
        for case in 0..400 {
            let text = text(&mut below);
            std::fs::write(&path, &text).unwrap();
            for on_error in [OnError::Fail, OnError::Skip, OnError::DeadLetter] {
                let (alone, bad, error) = read(&path, 1, on_error);
                let (ahead, bad_ahead, error_ahead) = read(&path, 3, on_error);
                let what = format!("case {case}, {on_error:?}: {text:?}");
                assert_eq!((&bad_ahead, &error_ahead), (&bad, &error), "{what}");
                // Of a batch with a bad row nothing is given, and batches end elsewhere.
                if error.is_none() {
                    assert_eq!(shown(&ahead), shown(&alone), "{what}");
                }
            }
        }
    }

    /// A row of CSV with a text of quotes, line ends and delimiters, mostly one in quotes.
    fn quoted(below: &mut dyn FnMut(usize) -> usize) -> String {
        let parts = ["a", "bc", ",", "\n", "\r\n", "\r", "\"\"", " "];
        let parts = (0..below(6)).map(|_| parts[below(parts.len())]);
        let text: String = parts.collect();
        let row = below(99);
        let end = ["\n", "\n", "\n", "\r\n", "\r", "\n\n"][below(6)];
        match below(24) {
            0 => format!("{row},st\"ray,1{end}"),
            1 => format!("{row},\"clo\"sed\",1{end}"),
            2 => format!("{row}, \"blank\",1{end}"),
            6 => format!("{row},\"behind\" ,1{end}"),
            7 if below(3) == 0 => format!("{row},\"{text}\"\"{end}"),
            3 => format!("\"{row}\",\"{text}\",\"1\"{end}"),
            4 => format!("{row},{text},1{end}"),
            5 if below(9) == 0 => format!("{row},\"{text}{end}"),
            _ => format!("{row},\"{text}\",1{end}"),
        }
    }

    #[test]
    fn csv_is_the_same_by_many_threads() {
        compare("rows.csv", |below| {
            let mut text = "n,s,f\n1,a,1.5\n2,b,2.5\n3,c,3.5\n".to_owned();
            let is_quoted = below(3) == 0;
            for row in 0..below(60) {
                if is_quoted || below(9) == 0 {
                    text += &quoted(below);
                    continue;
                }
                text += &match below(24) {
                    0 => "x,bad,1\n".to_owned(),
                    1 => "7,too,1,many\n".to_owned(),
                    2 => "\n".to_owned(),
                    3 => format!("{row},\"q,\nu\"\"o\",2\n"),
                    4 => format!("{row},crlf,2\r\n"),
                    5 => format!("{row},cr,2\r"),
                    6 => "\u{feff}8,x,2\n".to_owned(),
                    7 if below(9) == 0 => format!("{row},\"open,2\n"),
                    _ => format!("{row},t{},{}.25\n", below(5), below(99)),
                };
            }
            text + ["", "9,last,0", "9,last,0\r"][below(3)]
        });
    }

    #[test]
    fn json_lines_are_the_same_by_many_threads() {
        compare("rows.jsonl", |below| {
            let mut text = "{\"n\":1,\"s\":\"a\"}\n{\"n\":2}\n{\"s\":\"c\"}\n".to_owned();
            for row in 0..below(60) {
                text += &match below(20) {
                    0 => "{\"n\":\"x\"}\n".to_owned(),
                    1 => "{\"n\":1\n".to_owned(),
                    2 => "\r\n".to_owned(),
                    3 => format!("{{\"n\":{row},\"s\":\"li\\nne\"}}\r\n"),
                    _ => format!("{{\"n\":{row},\"s\":\"t{}\"}}\n", below(5)),
                };
            }
            text + ["", "{\"n\":9}"][below(2)]
        });
    }

    #[test]
    fn what_reading_says_in_the_midst_comes_behind_the_rows_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv.gz");
        let text: String = (0..400_000)
            .map(|row| format!("{row},{}\n", row * 7))
            .collect();
        let text = format!("a,b\n{text}");
        let whole = {
            use std::io::Write as _;
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            gzip.finish().unwrap()
        };
        for length in [whole.len() / 2, whole.len() - 3] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (alone, _, error) = read(&path, 1, OnError::Fail);
            let (ahead, _, error_ahead) = read(&path, 3, OnError::Fail);
            assert!(error.is_some_and(|error| error.contains("cut short")));
            assert!(error_ahead.is_some_and(|error| error.contains("cut short")));
            let rows = [alone, ahead].map(|rows| rows.unwrap().num_rows());
            assert!(rows[0].abs_diff(rows[1]) < 5, "{rows:?}");
        }
    }
}
