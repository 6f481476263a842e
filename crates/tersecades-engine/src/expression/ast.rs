//! Expressions as users write them: names, constants and operators, not yet bound to columns.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use tersecades_columnar::predicate::Comparison;
use tersecades_columnar::types::Value;

use super::function::ScalarFunction;

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; integers divide truncating towards zero, decimals as 64-bit floats; division by zero is
    /// null.
    Divide,
    /// `%`; the sign follows the dividend, modulo zero is null.
    Remainder,
}

impl Arithmetic {
    /// The SQL spelling.
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Remainder => "%",
        }
    }
}

/// An expression over the columns of a stream.
///
/// Logic is three-valued: a comparison with null is unknown, and a filter keeps rows that are
/// true.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A column by name.
    Column(String),
    /// A constant.
    Literal(Value),
    /// A comparison.
    Compare(Comparison, Box<Expression>, Box<Expression>),
    /// Arithmetic.
    Arithmetic(Arithmetic, Box<Expression>, Box<Expression>),
    /// Both are true.
    And(Box<Expression>, Box<Expression>),
    /// At least one is true.
    Or(Box<Expression>, Box<Expression>),
    /// The opposite; unknown stays unknown.
    Not(Box<Expression>),
    /// Whether the value is null; never unknown.
    IsNull(Box<Expression>),
    /// Equal to one of the constants.
    OneOf(Box<Expression>, Vec<Value>),
    /// The value as another type; out of range is an error.
    Cast(Box<Expression>, DataType),
    /// A timestamp from calendar parts, in UTC: year, month, day, hour, minute, second.
    ///
    /// Missing trailing parts count as their smallest value.
    MakeTimestamp(Vec<Expression>),
    /// A timestamp from a number of units since the epoch: of one with a fraction, the unit that it
    /// is in, before 1970 too.
    EpochTime(Box<Expression>, TimeUnit),
    /// A function from outside.
    Call {
        /// The function.
        function: Arc<dyn ScalarFunction>,
        /// What it is called with.
        arguments: Vec<Expression>,
    },
}

/// The column named `name`.
///
/// # Examples
/// ```
/// use tersecades_engine::expression::{col, lit};
/// let slow_failures = col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100));
/// assert_eq!(slow_failures.to_string(), "error_code <> 0 AND rtt_us >= 100");
/// assert_eq!((col("a") + lit(1)).to_string(), "a + 1");
/// ```
pub fn col(name: impl Into<String>) -> Expression {
    Expression::Column(name.into())
}

/// The constant `value`.
pub fn lit(value: impl Into<Value>) -> Expression {
    Expression::Literal(value.into())
}

impl<T: Into<Value>> From<T> for Expression {
    fn from(value: T) -> Self {
        Expression::Literal(value.into())
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident => $how:ident),* $(,)?) => {$(
        $(#[$doc])*
        pub fn $name(self, other: impl Into<Expression>) -> Expression {
            Expression::Compare(Comparison::$how, Box::new(self), Box::new(other.into()))
        }
    )*};
}

impl Expression {
    comparisons! {
        /// `self = other`
        eq => Equal,
        /// `self <> other`
        not_eq => NotEqual,
        /// `self < other`
        lt => Less,
        /// `self <= other`
        lt_eq => LessOrEqual,
        /// `self > other`
        gt => Greater,
        /// `self >= other`
        gt_eq => GreaterOrEqual,
    }

    /// `self AND other`
    pub fn and(self, other: Expression) -> Expression {
        Expression::And(Box::new(self), Box::new(other))
    }

    /// `self OR other`
    pub fn or(self, other: Expression) -> Expression {
        Expression::Or(Box::new(self), Box::new(other))
    }

    /// `self IS NULL`
    pub fn is_null(self) -> Expression {
        Expression::IsNull(Box::new(self))
    }

    /// `self BETWEEN low AND high`, both included
    pub fn between(self, low: impl Into<Expression>, high: impl Into<Expression>) -> Expression {
        self.clone().gt_eq(low).and(self.lt_eq(high))
    }

    /// `self IN (constants)`
    pub fn one_of<T: Into<Value>>(self, constants: impl IntoIterator<Item = T>) -> Expression {
        Expression::OneOf(
            Box::new(self),
            constants.into_iter().map(Into::into).collect(),
        )
    }

    /// `CAST(self AS data_type)`
    pub fn cast(self, data_type: DataType) -> Expression {
        Expression::Cast(Box::new(self), data_type)
    }

    /// `function(arguments)`
    pub fn call(function: Arc<dyn ScalarFunction>, arguments: Vec<Expression>) -> Expression {
        Expression::Call {
            function,
            arguments,
        }
    }

    /// The name of the column, where it is nothing else.
    pub(crate) fn as_column(&self) -> Option<&str> {
        match self {
            Expression::Column(name) => Some(name),
            _ => None,
        }
    }

    /// Whether a function from outside reads `column`.
    pub(crate) fn calls(&self, column: &str) -> bool {
        let mut found = false;
        self.visit(&mut |expression| {
            if let Expression::Call { arguments, .. } = expression {
                found |= arguments
                    .iter()
                    .any(|argument| argument.columns().contains(&column));
            }
        });
        found
    }

    /// Names of all columns that occur, in order of first occurrence.
    pub fn columns(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.visit(&mut |expression| {
            if let Expression::Column(name) = expression
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        });
        names
    }

    /// Gives each column that occurs the name that `named` has for it.
    pub(crate) fn rename(&mut self, named: &impl Fn(&str) -> String) {
        match self {
            Expression::Column(name) => *name = named(name),
            Expression::Literal(_) => {}
            Expression::Compare(_, a, b)
            | Expression::Arithmetic(_, a, b)
            | Expression::And(a, b)
            | Expression::Or(a, b) => {
                a.rename(named);
                b.rename(named);
            }
            Expression::Not(a)
            | Expression::IsNull(a)
            | Expression::OneOf(a, _)
            | Expression::Cast(a, _)
            | Expression::EpochTime(a, _) => a.rename(named),
            Expression::MakeTimestamp(parts)
            | Expression::Call {
                arguments: parts, ..
            } => parts.iter_mut().for_each(|part| part.rename(named)),
        }
    }

    fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Expression)) {
        see(self);
        match self {
            Expression::Column(_) | Expression::Literal(_) => {}
            Expression::Compare(_, a, b)
            | Expression::Arithmetic(_, a, b)
            | Expression::And(a, b)
            | Expression::Or(a, b) => {
                a.visit(see);
                b.visit(see);
            }
            Expression::Not(a)
            | Expression::IsNull(a)
            | Expression::OneOf(a, _)
            | Expression::Cast(a, _)
            | Expression::EpochTime(a, _) => a.visit(see),
            Expression::MakeTimestamp(parts)
            | Expression::Call {
                arguments: parts, ..
            } => parts.iter().for_each(|part| part.visit(see)),
        }
    }
}

impl Expression {
    /// The greatest whole number that the column `name` can be where this is true; none where that
    /// is not said.
    pub(crate) fn most_of(&self, name: &str) -> Option<i128> {
        use Comparison as C;
        use Expression as E;
        match self {
            E::And(left, right) => {
                let each = [left.most_of(name), right.most_of(name)];
                each.into_iter().flatten().min()
            }
            E::Or(left, right) => Some(left.most_of(name)?.max(right.most_of(name)?)),
            E::Compare(how, left, right) => match (how, left.as_ref(), right.as_ref()) {
                (_, E::Literal(_), E::Column(_)) => {
                    E::Compare(how.mirrored(), right.clone(), left.clone()).most_of(name)
                }
                (how, E::Column(column), E::Literal(Value::Integer(most))) if column == name => {
                    match how {
                        C::Equal | C::LessOrEqual => Some(*most),
                        C::Less => most.checked_sub(1),
                        _ => None,
                    }
                }
                _ => None,
            },
            E::OneOf(of, values) if of.as_column() == Some(name) => {
                let whole = values.iter().map(|value| match value {
                    Value::Integer(value) => Some(*value),
                    _ => None,
                });
                whole.collect::<Option<Vec<_>>>()?.into_iter().max()
            }
            _ => None,
        }
    }

    /// The terms that all have to be true.
    pub fn into_terms(self) -> Vec<Expression> {
        match self {
            Expression::And(left, right) => {
                let mut terms = left.into_terms();
                terms.extend(right.into_terms());
                terms
            }
            other => vec![other],
        }
    }
}

impl std::ops::Not for Expression {
    type Output = Expression;

    fn not(self) -> Expression {
        Expression::Not(Box::new(self))
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $how:ident),*) => {$(
        impl<T: Into<Expression>> std::ops::$trait<T> for Expression {
            type Output = Expression;

            fn $method(self, other: T) -> Expression {
                let other = Box::new(other.into());
                Expression::Arithmetic(Arithmetic::$how, Box::new(self), other)
            }
        }
    )*};
}
arithmetic!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide, Rem rem Remainder);
