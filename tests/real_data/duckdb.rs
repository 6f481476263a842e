//! DuckDB, run through Python on the same files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tersecades_engine::source::{SourceOptions, open};

use crate::data_set::{DataSet, Loaded};
use crate::question::Question;
use crate::row::{Row, rows_of};
use crate::skip;

static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(|| python_with("duckdb"));

/// A Python that has `module`: `TERSECADES_PYTHON`, `.venv`, or the one of the system.
pub(crate) fn python_with(module: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let given = std::env::var_os("TERSECADES_PYTHON").map(PathBuf::from);
    let known = [root.join(".venv/bin/python"), PathBuf::from("python3")];
    given.into_iter().chain(known).find(|python| {
        let mut import = Command::new(python);
        import
            .args(["-c", &format!("import {module}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    })
}

/// DuckDB's answers to `questions`, in order; `None`, said on the terminal, without DuckDB.
pub(crate) fn answers(
    set: &DataSet,
    loaded: &Loaded,
    questions: &[Question],
) -> Option<Vec<Vec<Row>>> {
    let texts = questions
        .iter()
        .map(|question| (question.name, question.sql()));
    answers_to_sql(set, loaded, &texts.collect::<Vec<_>>())
}

/// DuckDB's answers to queries of the table `stream`, each with a name; as [`answers`].
pub(crate) fn answers_to_sql(
    set: &DataSet,
    loaded: &Loaded,
    queries: &[(&str, String)],
) -> Option<Vec<Vec<Row>>> {
    let Some(python) = &*PYTHON else {
        skip(&format!(
            "no Python with DuckDB: {} is not compared (make venv)",
            set.name
        ));
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = loaded.folder.display().to_string().replace('\'', "''");
    let table = set.table_sql.replace("$DATA", &data);
    std::fs::write(folder.path().join("table.sql"), table).unwrap();
    for (name, sql) in queries {
        let file = folder.path().join(format!("{name}.sql"));
        std::fs::write(file, sql).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("duckdb_answers.py");
    let run = Command::new(python)
        .arg(script)
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let read = |(name, _): &(&str, String)| rows_in(&folder.path().join(format!("{name}.parquet")));
    Some(queries.iter().map(read).collect())
}

/// The rows of a file.
pub(crate) fn rows_in(file: &Path) -> Vec<Row> {
    let mut source = open(file, &SourceOptions::default()).unwrap();
    let batches = std::iter::from_fn(|| source.next().unwrap());
    rows_of(&batches.collect::<Vec<_>>())
}
