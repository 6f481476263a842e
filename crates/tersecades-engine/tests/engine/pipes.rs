//! Rows of pipes come when they are written, and are the same at any pace.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::io::{PipeWriter, Write};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use tersecades_engine::Result;
use tersecades_engine::expression::col;
use tersecades_engine::source::{CsvOptions, SourceOptions, Trickle, read};
use tersecades_engine::stream::Stream;

/// Longer than a pipe's pause, by much.
const WHILE: Duration = Duration::from_millis(300);

fn options(format: &str, types: &[(&str, DataType)]) -> SourceOptions {
    let types = types
        .iter()
        .map(|(name, it)| (String::from(*name), it.clone()));
    SourceOptions {
        format: Some(format.into()),
        csv: CsvOptions {
            types: types.collect(),
            ..CsvOptions::default()
        },
        ..SourceOptions::default()
    }
}

/// Numbers of the column `a` of each batch of what `write` writes; the source is opened elsewhere.
fn batches(
    options: SourceOptions,
    write: impl FnOnce(&mut PipeWriter, &dyn Fn() -> Vec<i64>),
) -> Vec<Vec<i64>> {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (sender, found) = channel();
    let reading = thread::spawn(move || {
        let numbers = |batch: RecordBatch| -> Vec<i64> {
            let column = arrow_cast::cast(batch.column(0), &DataType::Int64).unwrap();
            column.as_primitive::<Int64Type>().values().to_vec()
        };
        let mut source = read(Trickle::start(reader).unwrap(), &options).unwrap();
        while let Some(batch) = source.next().unwrap() {
            // One without rows says that nothing is at hand.
            if batch.num_rows() > 0 {
                sender.send(numbers(batch)).unwrap();
            }
        }
    });
    write(&mut writer, &|| found.recv_timeout(WHILE * 100).unwrap());
    drop(writer);
    reading.join().unwrap();
    found.iter().collect()
}

#[test]
fn rows_come_while_the_pipe_is_open() {
    let typed = [("a", DataType::Int64), ("b", DataType::Int64)];
    for (format, head, rows) in [
        ("csv", "a,b\n", ["1,2\n", "3,4\r\n\r\n5,6\n", "7,8\n"]),
        (
            "jsonl",
            "",
            ["{\"a\":1}\n", "{\"a\":3}\n\n{\"a\":5}\n", "{\"a\":7}\n"],
        ),
        (
            "json",
            "[",
            ["{\"a\":1},", "\n{\"a\":3},{\"a\":5}", ",{\"a\":7}]"],
        ),
    ] {
        let typed = if format == "csv" {
            &typed[..]
        } else {
            &typed[..1]
        };
        let left = batches(options(format, typed), |writer, next| {
            for (index, text) in [head, rows[0]].into_iter().enumerate() {
                writer.write_all(text.as_bytes()).unwrap();
                thread::sleep(WHILE * u32::from(index == 0));
            }
            assert_eq!(next(), [1], "{format}");
            writer.write_all(rows[1].as_bytes()).unwrap();
            assert_eq!(next(), [3, 5], "{format}");
            writer.write_all(rows[2].as_bytes()).unwrap();
        });
        assert_eq!(left, [[7]], "{format}");
    }
}

#[test]
fn results_of_workers_come_while_the_pipe_is_open() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (sender, found) = channel();
    let reading = thread::spawn(move || {
        let options = options("csv", &[("a", DataType::Int64)]);
        let source = read(Trickle::start(reader).unwrap(), &options).unwrap();
        let stream = Stream::from_source(source).threads(2);
        let rows = stream.filter(col("a").gt(2)).run().unwrap();
        for batch in rows {
            sender.send(batch.unwrap().num_rows()).unwrap();
        }
    });
    let next = || loop {
        let rows = found.recv_timeout(WHILE * 100).unwrap();
        if rows > 0 {
            return rows;
        }
    };
    for (text, rows) in [("a\n1\n3\n", 1), ("4\n5\n", 2), ("2\n9\n", 1)] {
        writer.write_all(text.as_bytes()).unwrap();
        assert_eq!(next(), rows, "{text}");
    }
    drop(writer);
    reading.join().unwrap();
}

#[test]
fn types_are_found_out_from_what_comes_in_two_seconds() {
    let options = options("csv", &[]);
    let left = batches(options, |writer, next| {
        writer.write_all(b"a;b\n").unwrap();
        thread::sleep(WHILE);
        writer.write_all(b"1;x\n").unwrap();
        assert_eq!(next(), [1]);
        writer.write_all(b"2;y\n").unwrap();
        assert_eq!(next(), [2]);
    });
    assert!(left.is_empty());
}

#[test]
fn pieces_at_any_places_give_the_same_rows() {
    let text = "a,b\n1,\"x,\ny\"\n\n22,\"he said \"\"no\"\"\"\n333,z\n4,\"\"";
    let typed = [("a", DataType::Int64), ("b", DataType::Utf8)];
    for at in 1..text.len() {
        let rows = |pause: Duration| {
            let batches = batches(options("csv", &typed), |writer, _| {
                let (first, second) = text.as_bytes().split_at(at);
                writer.write_all(first).unwrap();
                thread::sleep(pause);
                writer.write_all(second).unwrap();
            });
            batches.concat()
        };
        let pause = if at % 7 == 0 {
            WHILE / 2
        } else {
            Duration::ZERO
        };
        assert_eq!(rows(pause), [1, 22, 333, 4], "{at}");
    }
}

#[test]
fn packed_text_waits_through_pauses() {
    let text: String = (0..5_000).map(|row| format!("{row}\n")).collect();
    let packed = zstd::stream::encode_all(format!("a\n{text}").as_bytes(), 3).unwrap();
    let typed = [("a", DataType::Int64)];
    let (first, second) = packed.split_at(packed.len() / 2);
    let found = batches(options("csv", &typed), |writer, _| {
        writer.write_all(first).unwrap();
        thread::sleep(WHILE);
        writer.write_all(second).unwrap();
    });
    assert_eq!(found.concat(), (0..5_000).collect::<Vec<i64>>());
}

#[test]
fn a_source_is_given_up_while_its_pipe_stays_open() -> Result<()> {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"a\n1\n").unwrap();
    let typed = [("a", DataType::Int64)];
    let mut source = read(Trickle::start(reader)?, &options("csv", &typed))?;
    assert_eq!(source.next()?.unwrap().num_rows(), 1);
    drop(source);
    drop(writer);
    Ok(())
}

#[test]
fn packed_text_is_told_by_its_start_however_it_comes() {
    let text = b"a,b\n1,2\n3,4\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    let packed = [
        gzip.finish().unwrap(),
        zstd::encode_all(&text[..], 1).unwrap(),
        text.to_vec(),
    ];
    for bytes in packed {
        let typed = [("a", DataType::Int64), ("b", DataType::Int64)];
        let rows = batches(options("csv", &typed), |writer, _| {
            for byte in &bytes[..4] {
                writer.write_all(&[*byte]).unwrap();
                thread::sleep(WHILE);
            }
            writer.write_all(&bytes[4..]).unwrap();
        });
        assert_eq!(rows.concat(), [1, 3]);
    }
}
