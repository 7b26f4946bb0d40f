//! A route by content: each row goes to a table named by one of its columns.

mod config;

use std::sync::Arc;

use cdchost_sdk::{
    Batch, Column, LogicalType, Manifest, PluginError, ReadPlan, Result, Route, RowMeta, RowTargets, Schema, TableId,
    TableRoute, Values,
};

pub use config::Options;

/// Characters of a value that names a table.
const VALUE_CHARS_MAX: usize = 64;

/// The route.
#[derive(Debug)]
pub struct Split {
    options: Options,
    others: TableId,
}

cdchost_sdk::export_route!(Split);

impl Route for Split {
    type Options = Options;

    fn manifest() -> Manifest {
        cdchost_sdk::manifest! { name: "split", options: Options }
    }

    fn open(options: Options) -> Result<Self> {
        if !options.to.contains("{value}") {
            return Err(PluginError::config("value-unused", "`to` has no {value} in it, so that rows would not part"));
        }
        target(&options.to)?;
        Ok(Self { others: target(&options.others)?, options })
    }

    fn on_schema(&mut self, schema: &Arc<Schema>) -> Result<TableRoute> {
        let refuse = |code: &str, what: &str| {
            let message = format!("column {} of table {} {what}", self.options.column, schema.table);
            PluginError::config(code, message).with_table(&schema.table)
        };
        let place = schema.index_of(&self.options.column).ok_or_else(|| refuse("column-missing", "is not there"))?;
        let chooses = match &schema.fields[place].ty {
            LogicalType::Text { .. } => true,
            ty => whole_number(ty),
        };
        if !chooses {
            return Err(refuse("column-unusable", "is neither a text nor a whole number"));
        }
        let place = u32::try_from(place).expect("a table has less than 2^32 columns");
        Ok(TableRoute::ByRow(ReadPlan { columns: vec![place], meta: RowMeta::default() }))
    }

    fn route_rows(&mut self, batch: Batch) -> Result<RowTargets> {
        let mut targets = RowTargets::default();
        let column = batch.columns().first();
        let column = column.ok_or_else(|| PluginError::bug("column-missing", "a batch without its column"))?;
        for row in 0..batch.rows() {
            targets.push(self.choose(column, row)?);
        }
        Ok(targets)
    }
}

impl Split {
    fn choose(&self, column: &Column, row: usize) -> Result<TableId> {
        if column.is_null(row) {
            return Ok(self.others.clone());
        }
        let value = match column.values()? {
            Values::Text(texts) => texts.get(row).to_owned(),
            Values::Int8(values) => values[row].to_string(),
            Values::Int16(values) => values[row].to_string(),
            Values::Int32(values) => values[row].to_string(),
            Values::Int64(values) => values[row].to_string(),
            Values::Uint8(values) => values[row].to_string(),
            Values::Uint16(values) => values[row].to_string(),
            Values::Uint32(values) => values[row].to_string(),
            Values::Uint64(values) => values[row].to_string(),
            _ => return Err(PluginError::bug("column-unusable", "a column of a type that was refused")),
        };
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let names = !value.is_empty() && value.chars().all(plain) && value.chars().count() <= VALUE_CHARS_MAX;
        let listed = self.options.values.is_empty() || self.options.values.contains(&value);
        if names && listed { target(&self.options.to.replace("{value}", &value)) } else { Ok(self.others.clone()) }
    }
}

fn whole_number(ty: &LogicalType) -> bool {
    use LogicalType::{Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
    matches!(ty, Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64)
}

fn target(name: &str) -> Result<TableId> {
    match name.split_once('.') {
        Some((database, table)) if !database.is_empty() && !table.is_empty() => Ok(TableId::new(database, table)),
        _ => Err(PluginError::config("target-unusable", format!("{name:?} is no `database.table`"))),
    }
}

#[cfg(test)]
mod tests {
    use cdchost_sdk::harness::{Cell, RouteHarness, Table, check_readme_of};
    use cdchost_sdk::row;
    use serde_json::{Value, json};

    use super::*;

    fn orders() -> Table {
        let text = LogicalType::Text { max: Some(20) };
        Table::new("shop.orders")
            .key("id", LogicalType::Int64)
            .column("region", text)
            .column("price", LogicalType::Float64)
    }

    fn options(column: &str) -> Value {
        json!({ "column": column, "to": "ods.orders_{value}", "others": "ods.orders" })
    }

    fn targets(options: Value) -> Vec<String> {
        let mut route = RouteHarness::<Split>::open(options).unwrap();
        assert!(matches!(route.table(&orders()).unwrap(), TableRoute::ByRow(_)));
        let rows = orders().rows(1).insert(row![1, "eu", 0.0]).update(row![2, "eu", 0.0], row![2, "us", 0.0]);
        let rows = rows.insert(row![3, Cell::Null, 0.0]).insert(row![4, "../x", 0.0]);
        route.rows(rows).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_go_where_their_value_says() {
        let expect = ["ods.orders_eu", "ods.orders_eu", "ods.orders_us", "ods.orders", "ods.orders"];
        assert_eq!(targets(options("region")), expect);
        let numbers = ["ods.orders_1", "ods.orders_2", "ods.orders_2", "ods.orders_3", "ods.orders_4"];
        assert_eq!(targets(options("id")), numbers);
        let mut listed = options("region");
        listed["values"] = json!(["us"]);
        assert_eq!(targets(listed), ["ods.orders", "ods.orders", "ods.orders_us", "ods.orders", "ods.orders"]);
    }

    #[test]
    fn what_cannot_choose_is_refused() {
        for (column, code) in [("regoin", "column-missing"), ("price", "column-unusable")] {
            let mut route = RouteHarness::<Split>::open(options(column)).unwrap();
            assert_eq!(route.table(&orders()).unwrap_err().code, code);
        }
        let fixed = json!({ "column": "region", "to": "ods.orders", "others": "ods.orders" });
        assert_eq!(RouteHarness::<Split>::open(fixed).unwrap_err().code, "value-unused");
    }

    #[test]
    fn the_readme_has_the_options_as_they_are() {
        check_readme_of(&Split::manifest(), env!("CARGO_MANIFEST_DIR"));
    }
}
