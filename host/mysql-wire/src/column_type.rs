//! The numbers of column types in results, parameters and table maps.
//!
//! Source: `enum_field_types` of the server's public headers.

/// TINYINT.
pub const TINY: u8 = 1;
/// SMALLINT.
pub const SHORT: u8 = 2;
/// INT.
pub const LONG: u8 = 3;
/// FLOAT.
pub const FLOAT: u8 = 4;
/// DOUBLE.
pub const DOUBLE: u8 = 5;
/// NULL as a parameter.
pub const NULL: u8 = 6;
/// TIMESTAMP in results; in the log, one of a table made before MySQL 5.6.
pub const TIMESTAMP: u8 = 7;
/// BIGINT.
pub const LONGLONG: u8 = 8;
/// MEDIUMINT.
pub const INT24: u8 = 9;
/// DATE.
pub const DATE: u8 = 10;
/// TIME in results; in the log, one of a table made before MySQL 5.6.
pub const TIME: u8 = 11;
/// DATETIME in results; in the log, one of a table made before MySQL 5.6.
pub const DATETIME: u8 = 12;
/// YEAR.
pub const YEAR: u8 = 13;
/// DATE, as some tables of old have it.
pub const NEWDATE: u8 = 14;
/// VARCHAR and VARBINARY in the log.
pub const VARCHAR: u8 = 15;
/// BIT.
pub const BIT: u8 = 16;
/// TIMESTAMP in the log.
pub const TIMESTAMP2: u8 = 17;
/// DATETIME in the log.
pub const DATETIME2: u8 = 18;
/// TIME in the log.
pub const TIME2: u8 = 19;
/// MariaDB's BLOB COMPRESSED in the log.
pub const BLOB_COMPRESSED: u8 = 140;
/// MariaDB's VARCHAR COMPRESSED in the log.
pub const VARCHAR_COMPRESSED: u8 = 141;
/// VECTOR.
pub const VECTOR: u8 = 242;
/// JSON.
pub const JSON: u8 = 245;
/// DECIMAL.
pub const NEWDECIMAL: u8 = 246;
/// ENUM.
pub const ENUM: u8 = 247;
/// SET.
pub const SET: u8 = 248;
/// TEXT, BLOB and their kin.
pub const BLOB: u8 = 252;
/// VARCHAR and VARBINARY in results and as parameters.
pub const VAR_STRING: u8 = 253;
/// CHAR and BINARY; ENUM and SET in results.
pub const STRING: u8 = 254;
/// GEOMETRY and its kin.
pub const GEOMETRY: u8 = 255;
