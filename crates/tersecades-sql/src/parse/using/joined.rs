//! What a `FROM` joins, and which columns its tables share.

use std::ops::Range;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, JoinOperator, ObjectName, ReplaceSelectElement,
    ReplaceSelectItem, SelectItem, SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

use super::super::folded;
use super::super::window::call_of;
use super::letter_case::column_of;

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

    /// The column that `name` means, in the letters of the table where these are known.
    fn meant(&self, name: &Ident) -> Ident {
        let columns = self.columns.iter().flatten();
        let own = column_of(name, columns.map(String::as_str));
        match self.has(&own) {
            Some(true) => Ident::with_quote('"', own),
            _ => name.clone(),
        }
    }
}

/// A column that joins share.
pub(super) struct Shared {
    pub(super) name: Ident,
    /// The first of the tables that have it.
    pub(super) first: usize,
    /// What it is called there.
    own: Ident,
    /// The other tables, and what it is called there.
    others: Vec<(usize, Ident)>,
    /// What it is of all of them.
    pub(super) value: Expr,
}

impl Shared {
    /// What it is called in the table `index`.
    fn own_in(&self, index: usize) -> Option<&Ident> {
        let mut others = self.others.iter();
        match self.first == index {
            true => Some(&self.own),
            false => others.find(|(at, _)| *at == index).map(|(_, own)| own),
        }
    }
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
        left.name = name.clone();
        let values = (left.value.clone(), right.value.clone());
        left.value = match side {
            Side::Left | Side::LeftAlone => left.value,
            Side::Right => right.value,
            Side::Both => Expr::Function(call_of("coalesce", [left.value, right.value])),
        };
        left.others.push((right.first, right.own));
        left.others.extend(right.others);
        self.shared.push(left);
        Some(binary(values.0, BinaryOperator::Eq, values.1))
    }

    /// The column `name` of the tables in `range`, whether they share it or one of them has it.
    fn taken(&mut self, name: &Ident, range: Range<usize>) -> Option<Shared> {
        if let Some(at) = self.known(name, &range) {
            return Some(self.shared.remove(at));
        }
        let first = self.owner(name, range)?;
        let own = self.parts[first].meant(name);
        Some(Shared {
            name: name.clone(),
            first,
            value: self.parts[first].column(&own),
            own,
            others: Vec::new(),
        })
    }

    /// Where the column is among those that tables in `range` share, in other letters where none of
    /// the tables has it as it is written.
    fn known(&self, name: &Ident, range: &Range<usize>) -> Option<usize> {
        let wanted = folded(name);
        let position = |is_it: fn(&str, &str) -> bool| {
            let mut shared = self.shared.iter();
            shared.position(|it| range.contains(&it.first) && is_it(&folded(&it.name), &wanted))
        };
        let mut parts = self.parts[range.clone()].iter();
        let is_exact =
            name.quote_style.is_some() || parts.any(|part| part.has(&wanted) == Some(true));
        position(|name, wanted| name == wanted).or_else(|| match is_exact {
            true => None,
            false => position(|name, wanted| name.to_lowercase() == wanted),
        })
    }

    /// The one table in `range` that has the column, or else has it in other letters.
    fn owner(&self, name: &Ident, range: Range<usize>) -> Option<usize> {
        if range.len() == 1 {
            return Some(range.start);
        }
        let parts = &self.parts[range.clone()];
        let has = |part: &Part, name: &Ident| part.has(&folded(name));
        let exact: Option<Vec<bool>> = parts.iter().map(|part| has(part, name)).collect();
        let exact = exact?;
        let alike = parts.iter().map(|part| has(part, &part.meant(name)));
        let found = match exact.contains(&true) {
            true => exact,
            false => alike.collect::<Option<Vec<bool>>>()?,
        };
        let mut owners = range.zip(found).filter(|(_, is_it)| *is_it);
        let (owner, _) = owners.next()?;
        owners.next().is_none().then_some(owner)
    }

    /// The names of columns that tables from `start` up to `middle` and those behind have.
    pub(super) fn common(&self, start: usize, middle: usize) -> Option<Vec<Ident>> {
        let columns = |parts: &[Part]| -> Option<Vec<String>> {
            let columns: Option<Vec<_>> = parts.iter().map(|part| part.columns.clone()).collect();
            Some(columns?.concat())
        };
        let (left, right) = (&self.parts[start..middle], &self.parts[middle..]);
        Some(common(&columns(left)?, &columns(right)?))
    }

    /// Forgets the tables from `start` on, whose columns a join leaves out.
    pub(super) fn truncate(&mut self, start: usize) {
        self.parts.truncate(start);
        self.shared.retain(|it| it.first < start);
        let shared = self.shared.iter_mut();
        shared.for_each(|it| it.others.retain(|(index, _)| *index < start));
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

    /// Whether it is known that one of the tables has the column, or that they share it.
    pub(super) fn has(&self, name: &Ident) -> bool {
        let (mut parts, mut shared) = (self.parts.iter(), self.shared.iter());
        let is_shared = |it: &Shared| folded(&it.name) == folded(name);
        parts.any(|part| part.has(&folded(name)) == Some(true)) || shared.any(is_shared)
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
        let is_in = |names: &[Ident], name: &Ident| {
            let mut names = names.iter();
            names.any(|other| folded(other) == folded(name))
        };
        let shared = self.shared.iter();
        let once = shared.filter(|it| it.first != index || is_in(excluded, &it.name));
        let mut left_out: Vec<Ident> = once.filter_map(|it| it.own_in(index).cloned()).collect();
        for name in excluded {
            if part.has(&folded(name)) == Some(true) && !is_in(&left_out, name) {
                left_out.push(name.clone());
            }
        }
        let shared = self.shared.iter();
        let merged = shared.filter(|it| {
            let is_own = it.value == part.column(&it.own);
            it.first == index && !is_own && !is_in(excluded, &it.name)
        });
        let merged = merged.map(|it| {
            Box::new(ReplaceSelectElement {
                expr: it.value.clone(),
                column_name: it.own.clone(),
                as_keyword: true,
            })
        });
        let items: Vec<Box<ReplaceSelectElement>> = merged.collect();
        let names = left_out.into_iter();
        let names: Vec<ObjectName> = names.map(|name| ObjectName::from(vec![name])).collect();
        WildcardAdditionalOptions {
            opt_exclude: (!names.is_empty()).then_some(ExcludeSelectItem::Multiple(names)),
            opt_replace: (!items.is_empty()).then_some(ReplaceSelectItem { items }),
            ..WildcardAdditionalOptions::default()
        }
    }
}

/// The names that both have, without quotes where they are in different letters.
pub(super) fn common(left: &[String], right: &[String]) -> Vec<Ident> {
    let mut names: Vec<Ident> = Vec::new();
    for name in left {
        let lower = Ident::new(name.to_lowercase());
        let name = match right.contains(name) {
            true => Ident::with_quote('"', name),
            false if right.iter().any(|it| it.to_lowercase() == lower.value) => lower,
            false => continue,
        };
        if !names.iter().any(|known| folded(known) == folded(&name)) {
            names.push(name);
        }
    }
    names
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

pub(in crate::parse) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::BinaryOp { left, op, right }
}
