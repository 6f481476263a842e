//! What a `FROM` joins, and which columns its tables share.

use std::ops::Range;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, JoinOperator, ObjectName, ReplaceSelectElement,
    ReplaceSelectItem, SelectItem, SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

use super::super::folded;
use super::super::window::call_of;

/// A table of `FROM`.
pub(super) struct Part {
    /// What its columns are told by.
    pub(super) name: Vec<Ident>,
    /// Its columns, where they are known.
    pub(super) columns: Option<Vec<String>>,
}

impl Part {
    fn column(&self, name: &Ident) -> Expr {
        let mut names = self.name.clone();
        names.push(name.clone());
        Expr::CompoundIdentifier(names)
    }

    fn has(&self, name: &str) -> Option<bool> {
        let columns = self.columns.as_ref()?;
        Some(columns.iter().any(|column| column == name))
    }
}

/// A column that joins share.
pub(super) struct Shared {
    pub(super) name: Ident,
    /// The first of the tables that have it.
    pub(super) first: usize,
    /// The others.
    others: Vec<usize>,
    /// What it is of all of them.
    pub(super) value: Expr,
}

/// What a `FROM` joins and shares.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) parts: Vec<Part>,
    pub(super) shared: Vec<Shared>,
}

impl Joined {
    /// The condition that `name` of the tables from `start` up to `middle` equals that of those
    /// behind, which a join of this side makes one column.
    pub(super) fn share(
        &mut self,
        name: &Ident,
        start: usize,
        middle: usize,
        side: Side,
    ) -> Option<Expr> {
        let right = self.taken(name, middle..self.parts.len())?;
        let mut left = self.taken(name, start..middle)?;
        let values = (left.value.clone(), right.value.clone());
        left.value = match side {
            Side::Left | Side::LeftAlone => left.value,
            Side::Right => right.value,
            Side::Both => Expr::Function(call_of("coalesce", [left.value, right.value])),
        };
        left.others.push(right.first);
        left.others.extend(right.others);
        self.shared.push(left);
        Some(binary(values.0, BinaryOperator::Eq, values.1))
    }

    /// The column `name` of the tables in `range`, whether they share it or one of them has it.
    fn taken(&mut self, name: &Ident, range: Range<usize>) -> Option<Shared> {
        let is_it = |it: &Shared| folded(&it.name) == folded(name) && range.contains(&it.first);
        if let Some(at) = self.shared.iter().position(is_it) {
            return Some(self.shared.remove(at));
        }
        let first = self.owner(name, range)?;
        Some(Shared {
            name: name.clone(),
            first,
            others: Vec::new(),
            value: self.parts[first].column(name),
        })
    }

    /// The one table in `range` that has the column.
    fn owner(&self, name: &Ident, range: Range<usize>) -> Option<usize> {
        if range.len() == 1 {
            return Some(range.start);
        }
        let mut found = None;
        for index in range {
            if self.parts[index].has(&folded(name))? && found.replace(index).is_some() {
                return None;
            }
        }
        found
    }

    /// The names of columns that tables from `start` up to `middle` and those behind have.
    pub(super) fn common(&self, start: usize, middle: usize) -> Option<Vec<Ident>> {
        let columns = |parts: &[Part]| -> Option<Vec<String>> {
            let columns: Option<Vec<_>> = parts.iter().map(|part| part.columns.clone()).collect();
            Some(columns?.concat())
        };
        let (left, right) = (&self.parts[start..middle], &self.parts[middle..]);
        let (left, right) = (columns(left)?, columns(right)?);
        let mut names: Vec<String> = Vec::new();
        for name in left {
            if right.contains(&name) && !names.contains(&name) {
                names.push(name);
            }
        }
        let quoted = |name| Ident::with_quote('"', name);
        Some(names.into_iter().map(quoted).collect())
    }

    /// Forgets the tables from `start` on, whose columns a join leaves out.
    pub(super) fn truncate(&mut self, start: usize) {
        self.parts.truncate(start);
        self.shared.retain(|it| it.first < start);
        let shared = self.shared.iter_mut();
        shared.for_each(|it| it.others.retain(|index| *index < start));
    }

    /// The column `name`, under its name where it is of no table alone.
    pub(super) fn item(&self, name: Ident) -> SelectItem {
        let mut shared = self.shared.iter();
        let expr = Expr::Identifier(name.clone());
        match shared.find(|it| folded(&it.name) == folded(&name)) {
            Some(it) if matches!(it.value, Expr::Function(_)) => {
                SelectItem::ExprWithAlias { expr, alias: name }
            }
            _ => SelectItem::UnnamedExpr(expr),
        }
    }

    /// Whether it is known that one of the tables has the column.
    pub(super) fn has(&self, name: &Ident) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| part.has(&folded(name)) == Some(true))
    }

    /// All columns but those of `excluded`, each shared one once, where the first table has it.
    pub(super) fn all(&self, excluded: &[Ident]) -> Vec<SelectItem> {
        let parts = self.parts.iter().enumerate();
        parts
            .map(|(index, part)| {
                let name = ObjectName::from(part.name.clone());
                let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
                SelectItem::QualifiedWildcard(kind, self.options(index, part, excluded))
            })
            .collect()
    }

    /// What `*` of one of the tables leaves out, and what stands for shared columns.
    fn options(&self, index: usize, part: &Part, excluded: &[Ident]) -> WildcardAdditionalOptions {
        let is_in = |names: &[&Ident], name: &Ident| {
            let mut names = names.iter();
            names.any(|other| folded(other) == folded(name))
        };
        let excluded: Vec<&Ident> = excluded.iter().collect();
        let shared = self.shared.iter();
        let once = shared.filter(|it| it.others.contains(&index));
        let mut left_out: Vec<&Ident> = once.map(|it| &it.name).collect();
        for name in &excluded {
            if part.has(&folded(name)) == Some(true) && !is_in(&left_out, name) {
                left_out.push(name);
            }
        }
        let shared = self.shared.iter();
        let merged = shared.filter(|it| {
            let is_own = it.value == part.column(&it.name);
            it.first == index && !is_own && !is_in(&excluded, &it.name)
        });
        let merged = merged.map(|it| {
            Box::new(ReplaceSelectElement {
                expr: it.value.clone(),
                column_name: it.name.clone(),
                as_keyword: true,
            })
        });
        let items: Vec<Box<ReplaceSelectElement>> = merged.collect();
        let names = left_out.into_iter().cloned();
        let names: Vec<ObjectName> = names.map(|name| ObjectName::from(vec![name])).collect();
        WildcardAdditionalOptions {
            opt_exclude: (!names.is_empty()).then_some(ExcludeSelectItem::Multiple(names)),
            opt_replace: (!items.is_empty()).then_some(ReplaceSelectItem { items }),
            ..WildcardAdditionalOptions::default()
        }
    }
}

/// The side of a join that has a row for each of its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    /// The left one, whose columns are all there are.
    LeftAlone,
    Right,
    /// Either of them.
    Both,
}

impl Side {
    pub(super) fn of(operator: &JoinOperator) -> Option<Side> {
        use JoinOperator::{
            Anti, CrossJoin, FullOuter, Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, Right,
            RightOuter, Semi,
        };
        Some(match operator {
            Join(_) | Inner(_) | CrossJoin(_) | Left(_) | LeftOuter(_) => Side::Left,
            Semi(_) | LeftSemi(_) | Anti(_) | LeftAnti(_) => Side::LeftAlone,
            Right(_) | RightOuter(_) => Side::Right,
            FullOuter(_) => Side::Both,
            _ => return None,
        })
    }
}

pub(super) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::BinaryOp { left, op, right }
}
