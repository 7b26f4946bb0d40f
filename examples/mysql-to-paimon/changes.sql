SET NAMES utf8mb4;
UPDATE orders_example.customers SET credit = credit - 0.51 WHERE id = 1;

DELETE FROM orders_example.customers WHERE id = 2;

INSERT INTO orders_example.orders VALUES (3, 1, '2024-03-01 00:00:00', NULL, -1.5, X'');

UPDATE orders_example.orders SET id = 9223372036854775807, paid = '2024-03-02 08:00:00' WHERE id = 2;
