//! Aggregates as they are written, bound to slots.

use std::sync::Arc;

use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::fold::Asked;
use tersecades_columnar::types::Physical;

use crate::aggregate::collected::{Collecting, Kind, Second};
use crate::aggregate::user::FromOutside;
use crate::aggregate::{self, needs_argument, takes_one};
use crate::expression::evaluate::BoundExpression;
use crate::expression::{Expression, col};
use crate::frame::{EVENT_TIME, Scope, Slot};
use crate::plan::{AggregateCall, UserCall};

use super::keys::SharedDictionary;
use super::plan::{Argument, Reading};

/// Where frames keep an expression.
struct Kept {
    expression: Expression,
    /// The filter of the rows it is computed of, if not of all.
    within: Option<usize>,
    slot: Slot,
    data_type: DataType,
}

/// Binds aggregates, of which those with one argument share it.
pub(super) struct Binder<'a> {
    plain_scope: Scope,
    /// Whether event time orders the rows, or arrival alone.
    timed: bool,
    scope: &'a mut Scope,
    computed: &'a mut Vec<BoundExpression>,
    /// Where frames keep the expressions met so far.
    slots: Vec<Kept>,
    /// Arguments met so far.
    pub(super) arguments: Vec<Argument>,
    /// Collections met so far.
    pub(super) collections: Vec<Collecting>,
    /// Filters met so far, and where frames keep them.
    pub(super) filters: Vec<(Expression, Slot)>,
}

impl<'a> Binder<'a> {
    /// Binds aggregates over rows of `scope`, in the order of event time where `timed`.
    pub(super) fn new(
        scope: &'a mut Scope,
        computed: &'a mut Vec<BoundExpression>,
        timed: bool,
    ) -> Self {
        Binder {
            plain_scope: scope.clone(),
            timed,
            scope,
            computed,
            slots: Vec::new(),
            arguments: Vec::new(),
            collections: Vec::new(),
            filters: Vec::new(),
        }
    }

    /// Binds one aggregate.
    ///
    /// # Errors
    /// `InvalidArgument` and `SchemaMismatch` for unknown names and wrong types.
    pub(super) fn bind(&mut self, call: &AggregateCall) -> Result<Reading> {
        let listed = call.user.is_none().then(|| aggregate::find(&call.function));
        if let Some(Ok(function)) = listed
            && let Some(instead) = function.instead(call, &self.plain_scope)
        {
            return self.bind(&instead);
        }
        let filter = match &call.filter {
            Some(condition) => Some(self.filter(condition)?),
            None => None,
        };
        if let Some(user) = &call.user {
            return self.bind_user(user, filter);
        }
        let function = aggregate::find(&call.function)?;
        let parameter = function.parameter(call.parameter)?;
        let mut reading = Reading {
            aggregate: function,
            argument: None,
            collection: None,
            parameter,
            data_type: DataType::Int64,
        };
        // The rows that a filter lets pass are as many as its conditions that are not null there.
        let Some(expression) = call.argument.as_ref().or(call.filter.as_ref()) else {
            if function.needs_argument() {
                return Err(needs_argument(function.name()));
            }
            reading.data_type = function.result_type(&DataType::Int64)?;
            return Ok(reading);
        };
        if call.argument.is_none() && function.needs_argument() {
            return Err(needs_argument(function.name()));
        }
        let own = BoundExpression::bind(expression, &self.plain_scope)?;
        let argument = match function.computes_in(own.data_type()) {
            Some(wanted) => self.argument(&expression.clone().cast(wanted), filter)?,
            None => self.argument(expression, filter)?,
        };
        reading.argument = Some(argument);
        reading.data_type = function.result_type(&self.arguments[argument].data_type)?;
        match function.collects() {
            Some(collects) => {
                let second = self.second(function.name(), collects.second, call, filter)?;
                let collecting = Collecting {
                    kind: Kind::Listed(collects),
                    arguments: [argument].into_iter().chain(second).collect(),
                    parameter: collects.by_parameter.then_some(parameter),
                    filter,
                };
                reading.collection = Some(self.collection(collecting));
            }
            None if call.by.is_some() => return Err(takes_one(function.name())),
            None => {
                let argument = &mut self.arguments[argument];
                argument.asked = argument.asked.or(function.asked());
                argument.folded = true;
            }
        }
        Ok(reading)
    }

    fn bind_user(&mut self, user: &UserCall, filter: Option<usize>) -> Result<Reading> {
        let mut arguments = Vec::new();
        for expression in &user.arguments {
            arguments.push(self.argument(expression, filter)?);
        }
        let types = arguments
            .iter()
            .map(|at| self.arguments[*at].data_type.clone());
        let types: Vec<DataType> = types.collect();
        let name = user.aggregate.name();
        let Some(first) = arguments.first().copied() else {
            return Err(needs_argument(name));
        };
        let collection = self.collection(Collecting {
            kind: Kind::User(Arc::clone(&user.aggregate)),
            arguments,
            parameter: None,
            filter,
        });
        Ok(Reading {
            aggregate: &FromOutside,
            argument: Some(first),
            collection: Some(collection),
            parameter: 0.0,
            data_type: user.aggregate.return_type(&types)?,
        })
    }

    /// The index of the filter `condition`.
    fn filter(&mut self, condition: &Expression) -> Result<usize> {
        let known = self
            .filters
            .iter()
            .position(|(known, _)| known == condition);
        if let Some(index) = known {
            return Ok(index);
        }
        let bound = BoundExpression::bind_filter(condition, &self.plain_scope)?;
        let slot = match bound.column_slot() {
            Some(slot) => slot,
            None => {
                let name = format!("\u{0}filter {}", self.filters.len());
                self.computed.push(bound);
                self.scope.add(&name, DataType::Boolean)
            }
        };
        self.filters.push((condition.clone(), slot));
        Ok(self.filters.len() - 1)
    }

    /// Slot and type of `expression`, which is computed unless it is a column: of the rows that
    /// `filter` lets pass, where it may fail.
    fn slot(&mut self, expression: &Expression, filter: Option<usize>) -> Result<(Slot, DataType)> {
        let holds = |kept: &&Kept| kept.within.is_none() || kept.within == filter;
        let mut known = self.slots.iter().filter(holds);
        if let Some(kept) = known.find(|kept| kept.expression == *expression) {
            return Ok((kept.slot, kept.data_type.clone()));
        }
        let mut bound = BoundExpression::bind(expression, &self.plain_scope)?;
        let data_type = bound.data_type().clone();
        let within = filter.filter(|_| bound.may_fail());
        let slot = match bound.column_slot() {
            Some(slot) => slot,
            None => {
                if let Some(filter) = within {
                    bound = bound.within(self.filters[filter].1);
                }
                let name = format!("\u{0}{} {expression}", self.slots.len());
                self.computed.push(bound);
                self.scope.add(&name, data_type.clone())
            }
        };
        self.slots.push(Kept {
            expression: expression.clone(),
            within,
            slot,
            data_type: data_type.clone(),
        });
        Ok((slot, data_type))
    }

    /// The index of the argument `expression` of the rows that `filter` lets pass.
    fn argument(&mut self, expression: &Expression, filter: Option<usize>) -> Result<usize> {
        let known = self
            .arguments
            .iter()
            .position(|known| known.expression == *expression && known.filter == filter);
        if let Some(index) = known {
            return Ok(index);
        }
        let passing = filter.and_then(|filter| self.filters.get(filter));
        let (slot, data_type) = match passing.filter(|(condition, _)| condition == expression) {
            Some((_, slot)) => (*slot, DataType::Boolean),
            None => self.slot(expression, filter)?,
        };
        let label = match filter.and_then(|filter| self.filters.get(filter)) {
            Some((condition, _)) => format!("{expression} FILTER (WHERE {condition})"),
            None => expression.to_string(),
        };
        self.arguments.push(Argument {
            slot,
            physical: Physical::of(&data_type)?,
            data_type,
            asked: Asked::default(),
            folded: false,
            dictionary: SharedDictionary::default(),
            expression: expression.clone(),
            filter,
            label,
        });
        Ok(self.arguments.len() - 1)
    }

    /// The index of the second argument, if there is one.
    fn second(
        &mut self,
        name: &str,
        second: Second,
        call: &AggregateCall,
        filter: Option<usize>,
    ) -> Result<Option<usize>> {
        let time = col(EVENT_TIME);
        let expression = match (second, &call.by) {
            (Second::No | Second::Time, Some(_)) => return Err(takes_one(name)),
            (Second::No, None) => return Ok(None),
            (Second::Time, None) if !self.timed => return Ok(None),
            (Second::Time, None) => &time,
            (_, Some(by)) => by,
            (_, None) => {
                return Err(Error::invalid(format!("{name} needs two arguments"))
                    .hint("give the second one as its `by`"));
            }
        };
        let index = self.argument(expression, filter)?;
        let data_type = &self.arguments[index].data_type;
        match second {
            Second::Order if self.arguments[index].physical == Physical::Text => Err(
                Error::unsupported(format!("{name} by values of {data_type}"))
                    .hint("order by a number or a time"),
            ),
            Second::Number if !data_type.is_numeric() => Err(Error::schema(format!(
                "{name} needs numbers, got {data_type}"
            ))
            .hint("cast the argument")),
            _ => Ok(Some(index)),
        }
    }

    /// The index of a collection.
    fn collection(&mut self, collecting: Collecting) -> usize {
        let mut known = self.collections.iter();
        known
            .position(|known| known.is_same(&collecting))
            .unwrap_or_else(|| {
                self.collections.push(collecting);
                self.collections.len() - 1
            })
    }
}
