//! How the columns of a stream are encoded: tier, costs, and what the user insists on.

use std::sync::Arc;

use arrow_schema::Schema;
use tersecades_columnar::batch::{BatchEncoder, Layout};
use tersecades_columnar::cost_table::CostTable;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::{Goal, Tier, Uses};
use tersecades_columnar::nearest::nearest;
use tersecades_columnar::scheme::Scheme;

/// What the user says about encoding; by default the chooser decides everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EncodeOptions {
    /// Where encoded batches are kept.
    pub tier: Tier,
    /// What codecs cost; the shipped table when `None`.
    pub costs: Option<Arc<CostTable>>,
    /// How often what is kept will be read; as [`Uses::default`] has it when `None`.
    pub reads: Option<f64>,
    /// How encoded batches lie.
    pub layout: Layout,
    /// Columns and the schemes they are encoded by instead of a choice.
    pub schemes: Vec<(String, String)>,
}

impl EncodeOptions {
    /// What the chooser aims at for a column with these uses.
    pub fn goal(&self, uses: Uses) -> Goal {
        let reads = self.reads.unwrap_or(uses.reads);
        Goal {
            costs: self.costs.clone().unwrap_or_else(CostTable::shipped),
            uses: Uses { reads, ..uses },
            ..Goal::of_tier(self.tier)
        }
    }

    /// What the chooser aims at for a column of few values: codecs of every tier, in memory.
    ///
    /// A class of values takes a few bits, which only codecs of the cold tier pack.
    pub fn packed_goal(&self, uses: Uses) -> Goal {
        let goal = self.goal(uses);
        let mut costs = CostTable::clone(&goal.costs);
        costs.set_byte_ns(Tier::Cold, costs.byte_ns(self.tier));
        Goal {
            tier: Tier::Cold,
            costs: Arc::new(costs),
            ..goal
        }
    }

    /// Sets `encoder` up; columns of `arriving` that it does not encode are passed over.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns and codecs, and for codecs that cannot encode the
    /// column they are given for.
    pub fn apply(
        &self,
        encoder: &mut BatchEncoder,
        arriving: &Schema,
        uses: impl Fn(&str) -> Uses,
    ) -> Result<()> {
        let schema = Arc::clone(encoder.schema());
        for (column, field) in encoder.columns_mut().iter_mut().zip(schema.fields()) {
            column.aim(self.goal(uses(field.name())));
        }
        if self.layout == Layout::Row {
            encoder.lay_out(self.layout)?;
        }
        for (name, scheme) in &self.schemes {
            let scheme: Scheme = scheme
                .parse()
                .map_err(|error: Error| error.column(name.as_str()))?;
            let position = schema
                .fields()
                .iter()
                .position(|field| field.name() == name);
            match position.and_then(|position| encoder.columns_mut().get_mut(position)) {
                Some(column) => column
                    .require(scheme)
                    .map_err(|error| error.column(name.as_str()))?,
                None => known_column(arriving, name)?,
            }
        }
        Ok(())
    }
}

impl EncodeOptions {
    /// Forgets the schemes of columns that a query over `all` does not read.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns and codecs.
    pub(crate) fn keep_read(&mut self, all: &Schema, read: Option<&[String]>) -> Result<()> {
        for (name, scheme) in &self.schemes {
            known_column(all, name)?;
            let scheme: Result<Scheme> = scheme.parse();
            scheme.map_err(|error| error.column(name.as_str()))?;
        }
        if let Some(read) = read {
            self.schemes.retain(|(name, _)| read.contains(name));
        }
        Ok(())
    }
}

fn known_column(schema: &Schema, name: &str) -> Result<()> {
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    if names.contains(&name) {
        return Ok(());
    }
    let error = Error::invalid(format!("unknown column `{name}`")).column(name);
    Err(match nearest(name, &names) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(format!("known columns: {}", names.join(", "))),
    })
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};

    use super::*;

    fn outcome(schemes: &[(&str, &str)]) -> Result<()> {
        let schema = Schema::new(vec![
            Field::new("rtt_us", DataType::Int64, false),
            Field::new("name", DataType::Utf8, false),
        ]);
        let own = |(name, scheme): &(&str, &str)| ((*name).to_owned(), (*scheme).to_owned());
        let options = EncodeOptions {
            schemes: schemes.iter().map(own).collect(),
            ..EncodeOptions::default()
        };
        let mut encoder = BatchEncoder::new(&schema)?;
        options.apply(&mut encoder, &schema, |_| Uses::default())
    }

    #[test]
    fn what_cannot_be_encoded_so_is_refused_with_a_hint() {
        for (schemes, hint) in [
            (("rtt_su", "plain"), "did you mean `rtt_us`?"),
            (("rtt_us", "planes"), "did you mean `plain`?"),
            (("rtt_us", "dictionary"), "run_length"),
            (("name", "run_length"), "dictionary"),
        ] {
            let error = outcome(&[schemes]).unwrap_err();
            let said = error.hint_text().unwrap_or_default();
            assert!(said.contains(hint), "{schemes:?}: {error}");
        }
        let fine = [("rtt_us", "run_length"), ("name", "dictionary(run_length)")];
        outcome(&fine).unwrap();
        outcome(&[("name", "plain")]).unwrap();
    }
}
