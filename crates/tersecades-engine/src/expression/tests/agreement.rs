//! Random expressions on random tables, under every codec in turn, against the oracle.

use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::{Codec, Work};
use tersecades_columnar::error::ErrorKind;
use tersecades_columnar::registry::{self, CODECS};
use tersecades_columnar::selection::Selection;

use super::{encode, oracle, random, rows_of};
use crate::expression::{BoundExpression, BoundFilter};
use crate::frame::Scope;

#[test]
fn random_filters_agree_with_the_oracle_under_every_codec() {
    let (mut kept, mut errors) = (0, 0);
    for seed in 0..600 {
        let mut random = random::Random(seed);
        let table = oracle::Table::random(&mut random);
        let pinned = registry::exact().nth(seed as usize % (CODECS.len() + 1));
        let mut frame = encode(&table.batch, pinned);
        let scope = Scope::of_schema(frame.batch.schema());
        let expression = random::condition(&mut random, 3);
        let mut filter = BoundFilter::bind(&expression, &scope)
            .unwrap_or_else(|error| panic!("seed {seed}: {expression}: {error}"));
        for _ in 0..3 {
            frame.selection = random::selection(&mut random, table.batch.num_rows());
            let before = rows_of(&frame.selection);
            let result = filter.apply(&mut frame, &mut Work::default());
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::LimitExceeded);
                assert!(
                    before.iter().any(|row| table.may_fail(&expression, *row)),
                    "{expression}"
                );
                errors += 1;
                continue;
            }
            let expected: Vec<usize> = before
                .into_iter()
                .filter(|row| table.holds(&expression, *row))
                .collect();
            assert_eq!(
                rows_of(&frame.selection),
                expected,
                "seed {seed}, {:?}: {}",
                pinned.map(Codec::name),
                filter.describe()
            );
            kept += expected.len();
        }
    }
    assert!(
        kept > 10_000 && errors > 5,
        "{kept} rows, {errors} errors: the test tests little"
    );
}

#[test]
fn random_computed_columns_agree_with_the_oracle() {
    let mut values = 0;
    for seed in 10_000..10_400 {
        let mut random = random::Random(seed);
        let table = oracle::Table::random(&mut random);
        let pinned = registry::exact().nth(seed as usize % (CODECS.len() + 1));
        let mut frame = encode(&table.batch, pinned);
        let scope = Scope::of_schema(frame.batch.schema());
        let expression = match random.below(3) {
            0 => !random::condition(&mut random, 2),
            _ => random::number(&mut random, 3),
        };
        let mut bound = BoundExpression::bind(&expression, &scope).unwrap();
        frame.selection = random::selection(&mut random, table.batch.num_rows());
        let (mut out, mut work) = (Chunk::default(), Work::default());
        if let Err(error) = bound.evaluate(&frame, &mut out, &mut work) {
            assert_eq!(
                error.kind(),
                ErrorKind::LimitExceeded,
                "{expression}: {error}"
            );
            let rows = rows_of(&frame.selection);
            assert!(
                rows.iter().any(|row| table.may_fail(&expression, *row)),
                "{expression}"
            );
            continue;
        }
        assert_eq!(out.rows(), table.batch.num_rows());
        assert_eq!(out.data_type(), bound.data_type());
        let array = out
            .to_arrow(&Selection::all(out.rows()), &mut work)
            .unwrap();
        for row in rows_of(&frame.selection) {
            let expected = table.evaluate(&expression, row);
            let got = oracle::Cell::of(&array, row);
            assert!(
                got.same(&expected),
                "{expression} row {row}: {got:?}, not {expected:?}"
            );
            values += 1;
        }
    }
    assert!(values > 10_000);
}
