//! SQL text: parsed, planned, and run over small tables.

use std::cell::RefCell;
use std::path::Path;

use tersecades_columnar::error::ErrorKind;
use tersecades_sql::Session;

/// Most rows that are read of an answer.
const ROWS_MAX: usize = 1_000;

/// Longer numbers are cut: `repeat('x', 999999999)` is a valid query that fills the memory.
const DIGITS_MAX: usize = 4;

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// One text as a query; nothing is written.
///
/// # Panics
/// Where planning or running panics.
pub fn run(input: &[u8]) {
    let text = shortened(&String::from_utf8_lossy(input));
    SESSION.with_borrow_mut(|session| {
        let session = session.get_or_insert_with(|| {
            let mut session = Session::default();
            let made = lines("CREATE ");
            let made = made
                .iter()
                .filter(|statement| session.sql(statement).is_ok());
            assert!(made.count() > 10, "the tables of the SQL tests are missing");
            session
        });
        let mut rows = 0;
        let running = session.stream(&text).and_then(|stream| stream.run());
        let outcome = running.and_then(|mut running| {
            running.try_for_each(|batch| {
                rows += batch?.num_rows();
                Ok(())
            })
        });
        if let Err(error) = outcome {
            assert!(error.kind() != ErrorKind::Internal, "{error}: {text}");
        }
        assert!(rows < ROWS_MAX * ROWS_MAX, "{rows} rows: {text}");
    });
}

fn shortened(text: &str) -> String {
    let mut digits = 0;
    let kept = |c: &char| {
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        digits <= DIGITS_MAX
    };
    text.chars().filter(kept).collect()
}

/// The queries of the SQL tests.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let queries = lines("SELECT ").into_iter().chain(lines("WITH "));
    queries.map(String::into_bytes).collect()
}

/// The lines of the SQL tests that start so.
fn lines(start: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/sql/cases");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = files.map(|file| file.path()).collect();
    paths.sort();
    let texts = paths
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok());
    let wanted = |text: String| {
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    texts.flat_map(wanted).collect()
}
