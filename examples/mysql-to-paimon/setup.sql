SET NAMES utf8mb4;
CREATE DATABASE orders_example;

CREATE TABLE orders_example.customers (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  name VARCHAR(60) NOT NULL,
  born DATE,
  credit DECIMAL(10, 2) NOT NULL
);

CREATE TABLE orders_example.orders (
  id BIGINT NOT NULL PRIMARY KEY,
  customer INT UNSIGNED NOT NULL,
  placed DATETIME(3) NOT NULL,
  paid TIMESTAMP NULL,
  weight DOUBLE,
  receipt VARBINARY(16)
);

INSERT INTO orders_example.customers VALUES
  (1, 'Zoë', '1990-02-28', 10.50),
  (2, 'Søren', NULL, 0.00),
  (4294967295, '李', '2000-02-29', -99999999.99);

INSERT INTO orders_example.orders VALUES
  (1, 1, '2024-02-29 10:00:00.125', '2024-02-29 11:00:00', 0.1, 0x00FF),
  (2, 4294967295, '1999-12-31 23:59:59.999', NULL, NULL, NULL);
