//! Names and types of columns, found and given.

use super::*;

#[test]
fn every_inferred_type_comes_out_with_nulls() {
    let batch = read(
        "flag,count,ratio,day,at,seen,host\n\
         true,1,1.5,2013-01-01,2013-01-01 10:00:00,2013-01-01T10:00:00+01:00,a\n\
         NA,-,null,,N/A,NULL,-\n\
         false, -2 ,NaN,1969-12-31,1969-12-31T23:59:59.999999,1970-01-01T00:00:00Z,b\n\
         False,+3,1e300,2000-02-29,2013-01-01,1970-01-01 00:00Z,a\n",
        CsvOptions::default(),
    );
    let flags: Vec<_> = batch.column(0).as_boolean().iter().collect();
    assert_eq!(flags, [Some(true), None, Some(false), Some(false)]);
    let counts: Vec<_> = batch.column(1).as_primitive::<Int64Type>().iter().collect();
    assert_eq!(counts, [Some(1), None, Some(-2), Some(3)]);
    let ratios = batch.column(2).as_primitive::<Float64Type>();
    assert!(ratios.is_null(1) && ratios.value(2).is_nan() && ratios.is_valid(2));
    assert_eq!(ratios.value(3), 1e300);
    let days: Vec<_> = batch
        .column(3)
        .as_primitive::<Date32Type>()
        .iter()
        .collect();
    assert_eq!(days, [Some(15_706), None, Some(-1), Some(11_016)]);
    let at: Vec<_> = batch
        .column(4)
        .as_primitive::<TimestampMicrosecondType>()
        .iter()
        .collect();
    let new_year = 1_356_998_400_000_000;
    assert_eq!(
        at,
        [
            Some(new_year + 36_000_000_000),
            None,
            Some(-1),
            Some(new_year)
        ]
    );
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    assert_eq!(batch.column(5).data_type(), &utc);
    let seen: Vec<_> = batch
        .column(5)
        .as_primitive::<TimestampMicrosecondType>()
        .iter()
        .collect();
    assert_eq!(
        seen,
        [Some(new_year + 32_400_000_000), None, Some(0), Some(0)]
    );
    assert_eq!(batch.column(6).data_type(), &text_type());
    let hosts = batch.column(6).as_dictionary::<Int32Type>();
    assert_eq!(hosts.values().len(), 2, "each string once");
    assert!(
        batch
            .schema()
            .fields()
            .iter()
            .all(|field| field.is_nullable())
    );
}

#[test]
fn a_header_that_is_not_utf_8_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.csv");
    std::fs::write(&path, b"a,temp\xE9rature\n1,2\n").unwrap();
    let error = open(&path, &SourceOptions::default()).err().unwrap();
    let said = error.to_string();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{said}");
    assert!(
        said.contains("column 2") && said.contains("not UTF-8"),
        "{said}"
    );
    assert!(said.contains("names.csv"), "{said}");
}

#[test]
fn headers_may_be_absent_empty_or_repeated() {
    let batch = read("1.67\n1.65\n", csv(|csv| csv.header = false));
    assert_eq!(
        (names(&batch), batch.num_rows()),
        (vec!["column_1".to_string()], 2)
    );
    let batch = read("a,,a,a_2\n1,2,3,4\n", CsvOptions::default());
    assert_eq!(names(&batch), ["a", "column_2", "a_2", "a_2_2"]);
}

#[test]
fn given_types_win() {
    let dictionary = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
    let types = [
        ("a", DataType::UInt64),
        ("b", DataType::Float32),
        ("c", DataType::Utf8),
        ("d", dictionary.clone()),
        ("e", DataType::Int8),
        ("f", DataType::Timestamp(TimeUnit::Second, None)),
        ("g", DataType::LargeUtf8),
    ];
    let types: Vec<_> = types.map(|(name, ty)| (name.to_string(), ty)).to_vec();
    let text = "a,b,c,d,e,f,g\n18446744073709551615,1.5,007,x,-128,2013-01-01,y\n,,,,,,\n";
    let batch = read(text, csv(|csv| csv.types = types.clone()));
    assert_eq!(
        batch.column(0).as_primitive::<UInt64Type>().value(0),
        u64::MAX
    );
    assert_eq!(batch.column(1).as_primitive::<Float32Type>().value(0), 1.5);
    assert_eq!(texts(&batch, 2), [Some("007".into()), None]);
    for (index, (_, data_type)) in types.iter().enumerate() {
        assert_eq!(batch.column(index).data_type(), data_type);
        assert!(batch.column(index).is_null(1));
    }
}

#[test]
fn a_blank_file_has_the_columns_whose_types_are_given() {
    let given = CsvOptions {
        types: vec![("a".into(), DataType::Int32), ("b".into(), DataType::Utf8)],
        ..CsvOptions::default()
    };
    let options = SourceOptions {
        csv: given,
        ..Default::default()
    };
    for text in ["", "\n\n"] {
        let mut blank = source(text.as_bytes(), &options).unwrap();
        let schema = crate::source::Source::schema(&blank);
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|it| it.name().as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(*schema.field(0).data_type(), DataType::Int32);
        assert!(read_all(&mut blank).unwrap().is_empty());
        let error = source(text.as_bytes(), &SourceOptions::default())
            .err()
            .unwrap();
        assert!(error.hint_text().unwrap().contains("give column types"));
    }
}

#[test]
fn a_type_that_is_given_twice_is_refused() {
    let twice = |second: &str| {
        csv(|csv| {
            let names = ["a", second];
            csv.types = names
                .map(|name| (name.to_owned(), DataType::Int64))
                .to_vec();
        })
    };
    let error = read_error("a,b\n1,2\n", twice("a"));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(error.context().column.as_deref(), Some("a"));
    assert_eq!(read("a,b\n1,2\n", twice("b")).num_rows(), 1);
}

#[test]
fn texts_are_listed_once_each_where_they_repeat_and_row_by_row_where_they_do_not() {
    const BATCH_ROWS: usize = 2_000;
    let options = SourceOptions {
        batch_rows: BATCH_ROWS,
        csv: CsvOptions {
            types: vec![("b".to_owned(), text_type())],
            ..CsvOptions::default()
        },
        ..Default::default()
    };
    let text = |row: usize| match row / BATCH_ROWS {
        2.. => ["x", "\"\"", ""][row % 3].to_owned(),
        _ if row.is_multiple_of(9) => String::new(),
        _ => format!("text {row}"),
    };
    let batches = 20;
    let mut csv = "a,b\n".to_owned();
    (0..batches * BATCH_ROWS).for_each(|row| csv += &format!("{row},{}\n", text(row)));
    let read = read_all(&mut source(csv.as_bytes(), &options).unwrap()).unwrap();
    assert_eq!(read.len(), batches);
    let listed = |batch: &RecordBatch| batch.column(1).as_any_dictionary().values().len();
    let listed: Vec<usize> = read.iter().map(listed).collect();
    assert!(listed[0] < BATCH_ROWS, "nulls are not listed");
    assert_eq!(listed[1..16], [BATCH_ROWS; 15]);
    assert_eq!(listed[16..], [2; 4], "repeating texts are found again");
    for (batch, first) in read.iter().zip((0..).step_by(BATCH_ROWS)) {
        for (row, found) in (first..).zip(texts(batch, 1)) {
            let expected = Some(text(row)).filter(|text| !text.is_empty());
            let expected = expected.map(|text| text.replace('"', ""));
            assert_eq!(found, expected, "row {row}");
        }
    }
}
