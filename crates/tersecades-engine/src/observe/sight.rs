//! What one query can observe of the columns of its stream.

use arrow_schema::{DataType, Schema, TimeUnit};
use tersecades_columnar::error::Result;

use super::need::Need;
use super::passed::Passed;
use super::time_cut::TimeCuts;
use crate::aggregate::{self, collected::Second};
use crate::event_time::clock::ticks_late;
use crate::expression::filter::split_terms;
use crate::expression::observe::{Aspect, observe};
use crate::expression::{Expression, col};
use crate::frame::{Scope, Slot};
use crate::operator::project::Project;
use crate::operator::window_aggregate::plan::tick_ns;
use crate::plan::{AggregateCall, Query, Step};
use crate::runtime::bound_time::bind_time;
use crate::window::{Window, Windowing};

/// What of a column a query needs, of which rows, and why.
#[derive(Debug, Clone, Default)]
pub(super) struct Glimpse {
    pub(super) needs: Vec<(Passed, Need)>,
    pub(super) why: Vec<String>,
}

impl Glimpse {
    /// Adds what is needed of the rows that passed.
    pub(super) fn add(&mut self, passed: &Passed, need: Need) {
        match self.needs.iter_mut().find(|(known, _)| known == passed) {
            Some((_, known)) => known.merge(need),
            None => self.needs.push((passed.clone(), need)),
        }
    }
}

/// A walk over the steps of a query.
struct Sight<'a> {
    schema: &'a Schema,
    query: &'a Query,
    scope: Scope,
    columns: Vec<Glimpse>,
    /// What the rows looked at have passed, as far as columns of the stream decide it.
    passed: Passed,
    /// Whether names still mean the columns of the stream.
    as_they_came: bool,
}

/// What `query` needs of each column of `schema`, whose types are logical.
///
/// # Errors
/// What binding says.
pub(super) fn sight(query: &Query, schema: &Schema) -> Result<Vec<Glimpse>> {
    let mut sight = Sight {
        schema,
        query,
        scope: Scope::of_schema(schema),
        columns: vec![Glimpse::default(); schema.fields().len()],
        passed: Passed::default(),
        as_they_came: true,
    };
    for step in &query.steps {
        match step {
            Step::Filter(condition) => sight.filter(condition)?,
            Step::Project(columns) => sight.project(columns)?,
            Step::LookupJoin {
                table,
                stream_key,
                columns,
                ..
            } => {
                sight.value(stream_key, "look-up")?;
                sight.as_they_came = false;
                for (from, to) in columns {
                    let field = table.rows.schema_ref().field_with_name(from)?;
                    sight.scope.add(to, field.data_type().clone());
                }
            }
            Step::Aggregate {
                window,
                keys,
                aggregates,
            } => {
                sight.aggregate(window, keys, aggregates)?;
                return Ok(sight.columns);
            }
            Step::Rows(operator) => {
                sight.rows(&operator.describe())?;
                return Ok(sight.columns);
            }
        }
    }
    sight.visible("result");
    Ok(sight.columns)
}

/// Everything that `query` reads, as it is.
pub(super) fn whole_sight(query: &Query, schema: &Schema, why: &str) -> Result<Vec<Glimpse>> {
    let mut columns = sight(query, schema)?;
    for column in columns.iter_mut().filter(|column| !column.needs.is_empty()) {
        column.needs = vec![(Passed::default(), Need::Exact)];
        column.why.push(why.to_owned());
    }
    Ok(columns)
}

impl Sight<'_> {
    fn note(&mut self, slot: Slot, need: Need, why: &str) {
        // Every row moves the watermark, whether it passes or not.
        let times = self.query.event_time.expression.columns();
        let name = self.schema.fields().get(slot).map(|field| field.name());
        let is_time = name.is_some_and(|name| times.contains(&name.as_str()));
        // What is computed on the way was looked at where it was computed.
        if let Some(column) = self.columns.get_mut(slot) {
            match is_time {
                true => column.add(&Passed::default(), need),
                false => column.add(&self.passed, need),
            }
            if !column.why.iter().any(|known| known == why) {
                column.why.push(why.to_owned());
            }
        }
    }

    fn value(&mut self, name: &str, why: &str) -> Result<()> {
        let (_, slot) = self.scope.find(name)?;
        self.note(slot, Need::Exact, why);
        Ok(())
    }

    fn expression(&mut self, expression: &Expression, what: &str) -> Result<()> {
        self.look(expression, &format!("{what} {expression}"))
    }

    fn look(&mut self, expression: &Expression, why: &str) -> Result<()> {
        let mut seen = Vec::new();
        observe(expression, &self.scope, &mut |slot, aspect| {
            seen.push((slot, aspect))
        })?;
        for (slot, aspect) in seen {
            let data_type = self.type_of(slot);
            self.note(slot, Need::of_aspect(aspect, &data_type), why);
        }
        Ok(())
    }

    /// Each term looks at what the terms before it let through: a row that one of them drops stays
    /// dropped whatever the values that later ones see. Terms that compute run on what is left.
    fn filter(&mut self, condition: &Expression) -> Result<()> {
        let why = format!("filter {condition}");
        let [encoded, computed] = split_terms(condition, &self.scope)?;
        for term in encoded {
            self.look(term, &why)?;
            if self.as_they_came {
                self.passed.push(term);
            }
        }
        computed
            .into_iter()
            .try_for_each(|term| self.look(term, &why))
    }

    fn type_of(&self, slot: Slot) -> DataType {
        let fields = self.schema.fields();
        fields
            .get(slot)
            .map_or(DataType::Null, |field| field.data_type().clone())
    }

    fn project(&mut self, columns: &[(String, Expression)]) -> Result<()> {
        self.as_they_came = false;
        for (_, expression) in columns {
            match expression {
                // A name needs a column; its values matter where they are used.
                Expression::Column(name) => {
                    let (_, slot) = self.scope.find(name)?;
                    let need = Need::of_aspect(Aspect::Presence, &self.type_of(slot));
                    self.note(slot, need, "renaming");
                }
                computed => self.expression(computed, "computing")?,
            }
        }
        Project::bind(columns, &mut self.scope).map(drop)
    }

    /// Every column that a reader of rows sees.
    fn visible(&mut self, why: &str) {
        let shown: Vec<Slot> = self
            .scope
            .columns()
            .iter()
            .map(|(_, _, slot)| *slot)
            .collect();
        shown
            .into_iter()
            .for_each(|slot| self.note(slot, Need::Exact, why));
    }

    /// An operator on rows, which may be followed by anything.
    fn rows(&mut self, why: &str) -> Result<()> {
        self.visible(why);
        let by_time = |step: &Step| match step {
            Step::Aggregate { window, .. } => window.reads_time() || window.needs_time(),
            _ => false,
        };
        if self.query.steps.iter().any(by_time) {
            self.exact_time(why)?;
        }
        Ok(())
    }

    fn aggregate(
        &mut self,
        window: &Window,
        keys: &[String],
        calls: &[AggregateCall],
    ) -> Result<()> {
        for key in keys {
            self.value(key, "group key")?;
        }
        let mut by_time = false;
        for call in calls {
            by_time |= self.call(call)?;
        }
        let has_time = !self.query.event_time.is_absent(self.schema);
        match window.needs_time() || window.reads_time() && has_time {
            true => self.windows(window, by_time),
            false => Ok(()),
        }
    }

    /// Looks at one aggregate; returns whether it goes by event time.
    fn call(&mut self, call: &AggregateCall) -> Result<bool> {
        let what = match &call.user {
            Some(user) => user.aggregate.name(),
            None => call.function.as_str(),
        };
        let counted = call.argument.as_ref();
        let counted = counted.filter(|_| call.user.is_none() && what == "count");
        for expression in call.expressions() {
            let is_counted = counted.is_some_and(|counted| std::ptr::eq(counted, expression));
            match expression {
                Expression::Column(name) if is_counted => {
                    let (_, slot) = self.scope.find(name)?;
                    let need = Need::of_aspect(Aspect::Presence, &self.type_of(slot));
                    self.note(slot, need, "count of what is not null");
                }
                other => self.expression(other, what)?,
            }
        }
        if call.user.is_some() {
            return Ok(false);
        }
        let collects = aggregate::find(what)?.collects();
        Ok(collects.is_some_and(|collects| matches!(collects.second, Second::Time)))
    }

    fn windows(&mut self, window: &Window, by_time: bool) -> Result<()> {
        let Some((slot, unit)) = self.time_column()? else {
            return self.exact_time("event time");
        };
        let tick = tick_ns(unit);
        let why = window.to_string();
        let bound = (window.bind(tick)?, window.emission(tick)?);
        let need = match bound {
            (Windowing::Aligned(boundaries), None) if !by_time => {
                let lateness = ticks_late(self.query.event_time.lateness, tick);
                Need::of_times(TimeCuts::of_windows(&boundaries, lateness))
            }
            _ => Need::Exact,
        };
        self.note(slot, need, &why);
        Ok(())
    }

    /// The column whose values are the event time, if one is, and its unit.
    fn time_column(&self) -> Result<Option<(Slot, TimeUnit)>> {
        let time = &self.query.event_time;
        let mut scope = Scope::of_schema(self.schema);
        let unit = bind_time(time, &mut scope)?.unit;
        let name = match &time.expression {
            Expression::Column(name) => name,
            // The same ticks as another type.
            Expression::EpochTime(inner, _) => match &**inner {
                Expression::Column(name) => name,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let slot = Scope::of_schema(self.schema).find(name)?.1;
        let whole = match self.type_of(slot) {
            DataType::Timestamp(..) => time.expression == col(name.as_str()),
            // Unsigned times beyond 63 bits are errors, which no class may hide.
            DataType::UInt64 => false,
            other => other.is_integer(),
        };
        Ok(whole.then_some((slot, unit)))
    }

    fn exact_time(&mut self, why: &str) -> Result<()> {
        let time = &self.query.event_time.expression;
        let scope = Scope::of_schema(self.schema);
        for name in time.columns() {
            let slot = scope.find(name)?.1;
            self.note(slot, Need::Exact, why);
        }
        Ok(())
    }
}
