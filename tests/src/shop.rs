//! A small shop: four tables of varied types, their first rows, and customers who never sleep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::server::Server;
use crate::wait;

/// The tables; `{}` is the database. (No TIME of one or two digits behind the second: mysql_common cannot read negative
/// ones in the log.)
const TABLES: [&str; 4] = [
    "CREATE TABLE {}.customers (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(80) NOT NULL, email VARCHAR(120), \
     born DATE, credit DECIMAL(12,2) NOT NULL, active TINYINT(1) NOT NULL, notes TEXT, photo VARBINARY(64), \
     created TIMESTAMP(3) NULL, seen DATETIME(6))",
    "CREATE TABLE {}.products (sku CHAR(14) NOT NULL PRIMARY KEY, title VARCHAR(200) NOT NULL, \
     price DECIMAL(38,6) NOT NULL, weight FLOAT, volume DOUBLE, stock INT UNSIGNED NOT NULL, rating TINYINT UNSIGNED, \
     opens TIME(3), picture BINARY(16))",
    "CREATE TABLE {}.orders (id BIGINT NOT NULL PRIMARY KEY, customer BIGINT UNSIGNED NOT NULL, status VARCHAR(16), \
     total DECIMAL(20,4), placed DATETIME(3) NOT NULL, priority SMALLINT, amount MEDIUMINT UNSIGNED, paid TIMESTAMP NULL)",
    "CREATE TABLE {}.order_lines (order_id BIGINT NOT NULL, line SMALLINT UNSIGNED NOT NULL, sku CHAR(14), \
     amount INT NOT NULL, price DECIMAL(10,2) NOT NULL, wish MEDIUMTEXT, receipt BLOB, PRIMARY KEY (order_id, line))",
];

/// The first rows: `{}` is the database, `@n` the number of orders; made by the server itself.
const ROWS: [&str; 4] = [
    "INSERT INTO {}.customers SELECT n, CONCAT('Zoë Nº', n), IF(n % 7 = 0, NULL, CONCAT('c', n, '@example.org')), \
     DATE_ADD('1930-01-01', INTERVAL n % 30000 DAY), 100.00, n % 2, \
     CASE n % 5 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE REPEAT('naïve 🦀 ', n % 9) END, \
     IF(n % 3 = 0, NULL, UNHEX(CONCAT('00FF', HEX(n)))), \
     IF(n % 11 = 0, NULL, TIMESTAMPADD(SECOND, n * 61, '2001-02-03 04:05:06.789')), \
     IF(n % 13 = 0, NULL, TIMESTAMPADD(MICROSECOND, n * 1000003, '1999-12-31 23:59:59.999999')) FROM {}.n WHERE n <= @n DIV 3",
    "INSERT INTO {}.products SELECT CONCAT('sku-', LPAD(n, 8, '0')), CONCAT('thing ', n, ' ”', n % 97, '“'), \
     n * 1234567890123.000001, IF(n % 5 = 0, NULL, n / 3), IF(n % 6 = 0, NULL, n / 7 - 100), n * 97 % 4294967295, \
     n % 256, IF(n % 4 = 0, NULL, SEC_TO_TIME(n % 6000000 - 3000000 + 0.25)), UNHEX(MD5(n)) FROM {}.n WHERE n <= @n DIV 6",
    "INSERT INTO {}.orders SELECT n, 1 + n % (@n DIV 3), ELT(1 + n % 4, 'new', 'paid', 'sent', NULL), n * 1.2345, \
     TIMESTAMPADD(MINUTE, n, '2020-02-29 12:00:00.123'), n % 65536 - 32768, n * 31 % 16777216, \
     IF(n % 2 = 0, NULL, TIMESTAMPADD(HOUR, n % 100000, '1971-01-01 00:00:00')) FROM {}.n WHERE n <= @n",
    "INSERT INTO {}.order_lines SELECT n, l, CONCAT('sku-', LPAD(1 + (n * l) % (@n DIV 6), 8, '0')), n % 100 - 5, \
     l * 9.99, IF(n % 3 = 0, NULL, REPEAT('x', n % 40)), IF(n % 4 = 0, NULL, UNHEX(MD5(n + l))) \
     FROM {}.n JOIN (SELECT 1 l UNION ALL SELECT 2) AS two ON n <= @n",
];

/// A shop that is open.
#[derive(Clone, Debug)]
pub struct Shop {
    /// Its database.
    pub database: String,
    /// Orders that it opened with.
    pub orders: u32,
}

/// Makes the shop with so many orders, a third as many customers, a sixth as many products, twice as many lines.
pub async fn open(server: &Server, database: &str, orders: u32) -> Result<Shop> {
    let mut connection = server.connect().await?;
    let mut statements = vec![format!("CREATE DATABASE {database}"), format!("SET @n = {orders}")];
    statements.push(format!("SET SESSION cte_max_recursion_depth = {}", orders.saturating_add(1)));
    statements.extend(TABLES.iter().map(|t| t.replace("{}", database)));
    statements.push(format!("CREATE TEMPORARY TABLE {database}.n (n BIGINT PRIMARY KEY)"));
    statements.push(format!(
        "INSERT INTO {database}.n \
         WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < {orders}) SELECT n FROM c"
    ));
    statements.extend(ROWS.iter().map(|r| r.replace("{}", database)));
    statements.push(format!("DROP TEMPORARY TABLE {database}.n"));
    for statement in statements {
        connection.query_drop(&statement).await.with_context(|| statement.chars().take(120).collect::<String>())?;
    }
    connection.disconnect().await?;
    Ok(Shop { database: database.to_owned(), orders })
}

/// One transaction of the customers, after its commit.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// When its commit had been answered.
    pub at: Instant,
    /// Rows changed by all transactions so far.
    pub rows: u64,
}

/// Customers at work: one connection that changes the shop until told to stop.
#[derive(Debug)]
pub struct Customers {
    stop: Arc<AtomicBool>,
    done: Arc<Mutex<Vec<Done>>>,
    task: tokio::task::JoinHandle<Result<()>>,
}

impl Customers {
    /// Lets them in for the `visit`-th time. The same `seed` gives the same transactions; `pause` lies between two.
    pub async fn enter(server: &Server, shop: &Shop, visit: u32, seed: u64, pause: Duration) -> Result<Self> {
        let mut till = Till {
            connection: server.connect().await?,
            database: shop.database.clone(),
            random: StdRng::seed_from_u64(seed),
            orders: u64::from(shop.orders),
            // Above what any earlier visit inserted.
            next: u64::from(shop.orders) + u64::from(visit) * 1_000_000,
            rows: 0,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let done = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&done);
        let task = tokio::spawn(async move {
            while !told.load(Ordering::Relaxed) {
                till.transaction().await?;
                let done = Done { at: Instant::now(), rows: till.rows };
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(done);
                wait::pass(pause).await;
            }
            Ok(())
        });
        Ok(Self { stop, done, task })
    }

    /// Rows changed by all transactions whose commit was answered before `moment`.
    pub fn rows_before(&self, moment: Instant) -> u64 {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let count = done.partition_point(|done| done.at < moment);
        count.checked_sub(1).and_then(|last| done.get(last)).map_or(0, |done| done.rows)
    }

    /// Sends them home; gives all that they did.
    pub async fn leave(&mut self) -> Result<Vec<Done>> {
        self.stop.store(true, Ordering::Relaxed);
        (&mut self.task).await.context("the customers panicked")??;
        Ok(std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Where the customers' transactions are made.
struct Till {
    connection: Conn,
    database: String,
    random: StdRng,
    /// Orders that the shop opened with.
    orders: u64,
    /// The next new order, customer or product.
    next: u64,
    rows: u64,
}

impl Till {
    async fn transaction(&mut self) -> Result<()> {
        self.run("BEGIN").await?;
        for _ in 0..self.random.random_range(1..=4) {
            self.step().await?;
        }
        // A customer who changes their mind leaves no trace.
        let end = if self.random.random_ratio(1, 20) { "ROLLBACK" } else { "COMMIT" };
        let before = self.rows;
        self.run(end).await?;
        if end == "ROLLBACK" {
            self.rows = before;
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<()> {
        let customer = self.random.random_range(1..=self.orders / 3);
        let order = self.random.random_range(1..=self.orders);
        let product = self.random.random_range(1..=self.orders / 6);
        match self.random.random_range(0..12) {
            0 | 1 => self.new_order(customer, product).await,
            2 => {
                self.next += 1;
                let id = self.next;
                self.run(&format!(
                    "INSERT INTO {{}}.customers VALUES ({id}, 'new ☕ {id}', NULL, '2000-02-29', 0, 1, '', 0x00, \
                     '2024-03-31 01:30:00.5', '2024-02-29 23:59:59.000001')"
                ))
                .await
            }
            3 => self.transfer(customer).await,
            4 => {
                let id = self.next.saturating_sub(self.random.random_range(0..20));
                self.run(&format!("DELETE FROM {{}}.customers WHERE id = {id} AND credit = 0")).await
            }
            5 => {
                let (tenths, day) = (self.random.random_range(0..100_000), self.random.random_range(0..30_000));
                self.run(&format!(
                    "UPDATE {{}}.products SET weight = {tenths} / 10, volume = -volume, stock = stock ^ 1, \
                     opens = SEC_TO_TIME({day} - 15000.5), title = CONCAT('now ', {tenths}) \
                     WHERE sku = 'sku-{product:08}'"
                ))
                .await
            }
            6 => {
                self.run(&format!(
                    "UPDATE {{}}.order_lines SET amount = amount + 1, receipt = NULL WHERE order_id = {order}"
                ))
                .await
            }
            7 => self.run(&format!("DELETE FROM {{}}.order_lines WHERE order_id = {order}")).await,
            8 => self.rename_product(product).await,
            9 => self.again(order).await,
            10 => {
                let status = ["new", "paid", "sent", ""][self.random.random_range(0..4)];
                self.run(&format!(
                    "UPDATE {{}}.orders SET status = NULLIF('{status}', ''), total = total * -1.5, paid = NULL \
                     WHERE id BETWEEN {order} AND {order} + 9"
                ))
                .await
            }
            _ => {
                self.run(&format!(
                    "UPDATE {{}}.customers SET notes = REPEAT('é', {order} MOD 300), seen = NULL, active = 1 - active \
                     WHERE id = {customer}"
                ))
                .await
            }
        }
    }

    async fn new_order(&mut self, customer: u64, product: u64) -> Result<()> {
        self.next += 1;
        let id = self.next;
        self.run(&format!(
            "INSERT INTO {{}}.orders VALUES ({id}, {customer}, 'new', 12.5, '2024-02-29 10:00:00.001', -1, 16777215, NULL)"
        ))
        .await?;
        let lines = self.random.random_range(1..=5);
        let values: Vec<_> =
            (1..=lines).map(|l| format!("({id}, {l}, 'sku-{product:08}', {l}, 0.01, NULL, 0xFF00)")).collect();
        self.run(&format!("INSERT INTO {{}}.order_lines VALUES {}", values.join(","))).await
    }

    /// Moves money: the sum over all customers stays what it was.
    async fn transfer(&mut self, from: u64) -> Result<()> {
        let to = self.random.random_range(1..=self.orders / 3);
        let cents = self.random.random_range(1..=500);
        self.run(&format!(
            "UPDATE {{}}.customers SET credit = credit + IF(id = {from}, -1, 1) * {cents} / 100 \
             WHERE id IN ({from}, {to}) AND {from} <> {to} \
             AND (SELECT COUNT(*) FROM (SELECT id FROM {{}}.customers WHERE id IN ({from}, {to})) AS both_there) = 2"
        ))
        .await
    }

    /// Changes a key twice in one transaction, so that it is another row's and its own again.
    async fn rename_product(&mut self, product: u64) -> Result<()> {
        let sku = format!("sku-{product:08}");
        self.run(&format!("UPDATE {{}}.products SET sku = 'moved' WHERE sku = '{sku}'")).await?;
        let back = self.random.random_bool(0.5);
        let to = if back { sku } else { format!("new-{:010}", self.next % 10_000_000_000) };
        self.next += 1;
        self.run(&format!("UPDATE {{}}.products SET sku = '{to}' WHERE sku = 'moved'")).await
    }

    /// Deletes an order and inserts another with its key.
    async fn again(&mut self, order: u64) -> Result<()> {
        self.run(&format!("DELETE FROM {{}}.orders WHERE id = {order}")).await?;
        self.run(&format!(
            "INSERT INTO {{}}.orders VALUES ({order}, 1, NULL, NULL, '2038-01-19 03:14:07', 32767, 0, '2038-01-19 03:14:07')"
        ))
        .await
    }

    async fn run(&mut self, statement: &str) -> Result<()> {
        let statement = statement.replace("{}", &self.database);
        self.connection
            .query_drop(&statement)
            .await
            .with_context(|| statement.chars().take(120).collect::<String>())?;
        self.rows += self.connection.affected_rows();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin;

    #[tokio::test]
    async fn customers_change_all_tables_and_lose_no_money() {
        let server = Server::start().unwrap();
        let shop = open(&server, "shop", 600).await.unwrap();
        let mut connection = server.connect().await.unwrap();
        let money = "SELECT CAST(SUM(credit) AS CHAR) FROM shop.customers";
        let before: Option<String> = connection.query_first(money).await.unwrap();
        let tables = origin::describe_all(&mut connection, "shop").await.unwrap();
        let mut first = Vec::new();
        for table in &tables {
            first.push(origin::rows(&mut connection, table).await.unwrap());
        }
        let mut customers = Customers::enter(&server, &shop, 1, 7, Duration::ZERO).await.unwrap();
        wait::pass(Duration::from_secs(1)).await;
        let done = customers.leave().await.unwrap();
        assert!(done.len() > 50 && done.last().unwrap().rows > 100, "{} transactions", done.len());
        let after: Option<String> = connection.query_first(money).await.unwrap();
        assert_eq!(before, after);
        for (table, before) in tables.iter().zip(&first) {
            let now = origin::rows(&mut connection, table).await.unwrap();
            assert!(before.len() >= 100, "{table}: {} rows", before.len());
            assert!(!crate::rows::differences(table, before, &now).is_empty(), "{table} did not change");
        }
    }
}
