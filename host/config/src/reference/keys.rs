//! Every key of pipeline.toml, once: the loader, the reference page and the JSON Schema are all made from this table.

use std::time::Duration;

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Section {
    /// As the user writes it, e.g. `[checkpoint]`.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) about: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [Key],
    /// What becomes of other keys.
    pub(crate) others: Others,
    /// Keys that are known and cannot be used yet, with what to do instead.
    pub(crate) not_offered: &'static [(&'static str, &'static str)],
}

/// What becomes of keys that the host does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// They are refused.
    Refused,
    /// They are the plugin's own options.
    Plugin,
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) absent: Absent,
    pub(crate) about: &'static str,
}

/// What happens without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The file is refused.
    Required,
    /// This value counts, written as in the file.
    Default(&'static str),
    /// Nothing, or what the words say.
    Means(&'static str),
}

/// What a key holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text that is not empty.
    Text,
    /// A text that is never shown.
    Secret,
    /// A name that enters state and target names.
    Name,
    /// 64 hexadecimal digits.
    Digest,
    /// A path; relative to the folder of the pipeline file.
    Path,
    /// `true` or `false`.
    Flag,
    /// A whole number in a range.
    Count { min: u64, max: u64 },
    /// A duration in a range.
    Duration { min: Duration, max: Duration },
    /// A size in a range.
    Size { min: u64, max: u64 },
    /// One of some words, and words that are known and cannot be used yet.
    Choice { words: &'static [&'static str], not_offered: &'static [&'static str] },
    /// A list of texts that are not empty.
    Texts,
    /// A table.
    Table(&'static Section),
    /// A list of tables (`[[…]]`).
    Tables(&'static Section),
    /// Tables with names of the user's choice (`[storage.NAME]`).
    Named(&'static Section),
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, absent: Absent::Required, about }
}

const fn default(name: &'static str, kind: Kind, value: &'static str, about: &'static str) -> Key {
    Key { name, kind, absent: Absent::Default(value), about }
}

const fn optional(name: &'static str, kind: Kind, means: &'static str, about: &'static str) -> Key {
    Key { name, kind, absent: Absent::Means(means), about }
}

const fn closed(name: &'static str, about: &'static str, keys: &'static [Key]) -> Section {
    Section { name, about, keys, others: Others::Refused, not_offered: &[] }
}

const fn seconds(min: u64, max: u64) -> Kind {
    Kind::Duration { min: Duration::from_secs(min), max: Duration::from_secs(max) }
}

const DAY: u64 = 86_400;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The whole file.
pub(crate) static FILE: Section = Section {
    name: "pipeline.toml",
    about: "One pipeline: a source, its sinks, and where its checkpoints lie.",
    keys: &[
        required("pipeline", Kind::Table(&PIPELINE), "The pipeline as a whole."),
        required("source", Kind::Table(&SOURCE), "Where the changes come from."),
        optional(
            "transform",
            Kind::Tables(&TRANSFORM),
            "none",
            "What becomes of rows on the way: a table passes all that match it, in the order of the file.",
        ),
        optional(
            "route",
            Kind::Tables(&ROUTE),
            "every table to one of its own name",
            "Which tables rows go to. A table goes wherever the routes that match it lead.",
        ),
        required("sink", Kind::Tables(&SINK), "Where they go. Every sink gets the same stream."),
        optional("storage", Kind::Named(&STORAGE), "no roots", "Roots that plugins may be granted by name."),
        required("checkpoint", Kind::Table(&CHECKPOINT), "When and where checkpoints are made."),
    ],
    others: Others::Refused,
    not_offered: &[],
};

static PIPELINE: Section = Section {
    name: "[pipeline]",
    about: "The pipeline as a whole.",
    keys: &[
        required("name", Kind::Name, "Its stable name; enters the names of state and of things in targets."),
        default("parallelism", Kind::Count { min: 1, max: 128 }, "1", "Writers of each sink."),
        default(
            "guarantee",
            Kind::Choice { words: &["exactly-once", "at-least-once"], not_offered: &[] },
            "exactly-once",
            "What must hold end to end. A sink that cannot hold it is refused at the start.",
        ),
        optional("restart", Kind::Table(&RESTART), "the defaults", "How often the pipeline restarts by itself."),
    ],
    others: Others::Refused,
    not_offered: &[(
        "schema-change",
        "take the key out: a change of a captured table's columns stops the pipeline with statement and position",
    )],
};

static RESTART: Section = closed(
    "[pipeline.restart]",
    "How often the pipeline restarts by itself after a failure, before it stops for good.",
    &[
        default("budget", Kind::Count { min: 0, max: 1_000_000 }, "10", "Restarts within `window` at most."),
        default("window", seconds(1, 30 * DAY), "10m", "The time that `budget` counts for."),
        default(
            "backoff",
            Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(DAY) },
            "200ms",
            "First pause; doubles up to `backoff-max`.",
        ),
        default("backoff-max", seconds(1, DAY), "30s", "Longest pause."),
    ],
);

static SOURCE: Section = Section {
    name: "[source]",
    about: "A MySQL server whose tables are captured: read once, then followed through its binlog.",
    keys: &[
        required("type", Kind::Choice { words: &["mysql", "mariadb"], not_offered: &[] }, "Kind of the server."),
        required("hosts", Kind::Texts, "`host:port` of the server; the port is 3306 if not given."),
        required(
            "username",
            Kind::Text,
            "Account; needs SELECT on the tables, REPLICATION SLAVE and REPLICATION CLIENT.",
        ),
        required(
            "password",
            Kind::Secret,
            "Its password; best as `${VARIABLE}` or `${file:/path}`; such a file is read again at every login.",
        ),
        required(
            "tables",
            Kind::Texts,
            "Tables to capture: `database.table`, each part a regular expression, `*` for all; a leading `!` excludes.",
        ),
        optional("startup", Kind::Table(&STARTUP), "the defaults", "Where a pipeline without checkpoint begins."),
        optional(
            "server-id",
            Kind::Count { min: 1, max: 4_294_967_295 },
            "one drawn at random",
            "The id that this replica shows to the server; no other replica may have it.",
        ),
        optional("tls", Kind::Table(&TLS), "the defaults", "Encryption of the connections."),
        default(
            "readers",
            Kind::Count { min: 1, max: 64 },
            "2",
            "Connections that read tables, several in one table where fewer tables are left.",
        ),
        optional("chunk", Kind::Table(&CHUNK), "the defaults", "How tables are read."),
        default(
            "watermark",
            Kind::Choice { words: &["gtid", "lock", "lag"], not_offered: &[] },
            "gtid",
            "How a read is placed in the log. `gtid` needs gtid_mode = ON. The others are for gtid_mode = OFF: `lock` \
             takes share locks on the rows of a chunk while it is read and needs the right to lock; `lag` waits and \
             trusts that it was long enough, which only guarantee = \"at-least-once\" takes.",
        ),
        default("watermark-lag", seconds(1, 3600), "5s", "How long `watermark = \"lag\"` waits before each chunk."),
        default(
            "zero-date",
            Kind::Choice { words: &["error", "null", "text"], not_offered: &[] },
            "error",
            "Dates with a zero in year, month or day: stop; NULL, in columns that may then be NULL; or all dates as the \
             server's text.",
        ),
        default("heartbeat", seconds(1, 3600), "5s", "The log's connection counts as lost after three of these."),
        default("connect-timeout", seconds(1, 600), "10s", "Time to connect and log in."),
        default(
            "reconnect-timeout",
            seconds(1, 30 * DAY),
            "5m",
            "How long lost connections are tried again before the pipeline gives up.",
        ),
        optional("transaction", Kind::Table(&TRANSACTION), "the defaults", "How transactions are held."),
    ],
    others: Others::Refused,
    not_offered: &[
        ("failover", "failover between servers is not offered yet: name one host"),
        ("on-gap", "take the key out: binlogs purged too early stop the pipeline"),
    ],
};

static STARTUP: Section = closed(
    "[source.startup]",
    "Where a pipeline without checkpoint begins; a restore ignores it.",
    &[default(
        "mode",
        Kind::Choice {
            words: &["initial", "snapshot", "latest"],
            not_offered: &["earliest", "gtid", "file", "timestamp"],
        },
        "initial",
        "`initial`: read all tables, then follow the log. `snapshot`: read all tables and end. `latest`: follow the log \
         from where it ends now.",
    )],
);

static TLS: Section = closed(
    "[source.tls]",
    "Encryption of the connections to the server.",
    &[
        optional(
            "mode",
            Kind::Choice {
                words: &["disabled", "preferred", "required", "verify-ca", "verify-identity"],
                not_offered: &[],
            },
            "`verify-identity`; for a loopback address `verify-ca` with a `ca`, `preferred` without",
            "How much is asked for. Only the last two know whom they talk to.",
        ),
        optional("ca", Kind::Path, "the public authorities", "PEM file of the authorities to trust."),
        optional("cert", Kind::Path, "none", "PEM file of the client's certificate."),
        optional("key", Kind::Path, "none", "PEM file of the client's key."),
        optional(
            "allow-public-key-retrieval",
            Kind::Flag,
            "only on a loopback address",
            "Ask the server for its RSA key when a password must be sent without TLS.",
        ),
    ],
);

static CHUNK: Section = closed(
    "[source.chunk]",
    "How tables are read: in stretches of their key.",
    &[
        default("rows", Kind::Count { min: 1, max: 1_000_000 }, "8096", "Rows a chunk at most."),
        default("bytes", Kind::Size { min: 64 * KIB, max: GIB }, "8MiB", "Bytes a chunk at most, about."),
    ],
);

static TRANSACTION: Section = closed(
    "[source.transaction]",
    "How transactions of the log are held until their end is read.",
    &[default(
        "max-buffer",
        Kind::Size { min: MIB, max: 64 * GIB },
        "64MiB",
        "A transaction larger than this is handed on before its end is read; a checkpoint waits for its end.",
    )],
);

const TABLE: Key = optional(
    "table",
    Kind::Text,
    "see `tables`",
    "The tables that it is for: `database.table`, each part a regular expression. By the source's names.",
);
const TABLES: Key = optional("tables", Kind::Texts, "see `table`", "Several of them; a leading `!` excludes.");
const STEP_ID: Key = optional("id", Kind::Name, "the plugin's name, numbered", "Its name in the pipeline.");
const SHA256: Key = optional("sha256", Kind::Digest, "any", "SHA-256 that the component must have.");
const LANES: Key = optional(
    "parallelism",
    Kind::Count { min: 1, max: 128 },
    "1",
    "Lanes side by side; a table is always in the same one. Of several sections the highest counts.",
);
const NOT_OFFERED_IN_STEPS: &[(&str, &str)] = &[
    ("allow", "take the key out: there is nothing to grant here"),
    ("on-error", "take the key out: a row that is refused stops the pipeline"),
    ("schema-change", "take the key out: a change of a captured table's columns stops the pipeline"),
];

static TRANSFORM: Section = Section {
    name: "[[transform]]",
    about: "One transform: the host's keys below; all other keys are the plugin's own and are checked against its schema.",
    keys: &[
        TABLE,
        TABLES,
        required("plugin", Kind::Name, "The component's name in the plugin folder."),
        STEP_ID,
        SHA256,
        LANES,
        optional("limits", Kind::Table(&TRANSFORM_LIMITS), "the defaults", "What the plugin may use."),
    ],
    others: Others::Plugin,
    not_offered: NOT_OFFERED_IN_STEPS,
};

static ROUTE: Section = Section {
    name: "[[route]]",
    about: "One route: the host's keys below; all other keys are the plugin's own and are checked against its schema. \
            The standard plugin has `to`: the target, in which `$1` stands for what the first group of `table` matched.",
    keys: &[
        TABLE,
        TABLES,
        default("plugin", Kind::Name, "regex", "The component's name in the plugin folder."),
        STEP_ID,
        SHA256,
        LANES,
        optional("limits", Kind::Table(&ROUTE_LIMITS), "the defaults", "What the plugin may use."),
    ],
    others: Others::Plugin,
    not_offered: NOT_OFFERED_IN_STEPS,
};

static TRANSFORM_LIMITS: Section =
    closed("[transform.limits]", "What each instance of the plugin may use.", LIMIT_KEYS);
static ROUTE_LIMITS: Section = closed("[route.limits]", "What each instance of the plugin may use.", LIMIT_KEYS);

static SINK: Section = Section {
    name: "[[sink]]",
    about: "One sink: the host's keys below; all other keys are the plugin's own and are checked against its schema.",
    keys: &[
        optional("id", Kind::Name, "the plugin's name", "Its name in the pipeline; enters state and target names."),
        required("plugin", Kind::Name, "The component's name in the plugin folder."),
        optional("sha256", Kind::Digest, "any", "SHA-256 that the component must have."),
        optional("parallelism", Kind::Count { min: 1, max: 128 }, "the pipeline's", "Number of writers."),
        optional("allow", Kind::Table(&ALLOW), "nothing", "What the plugin may touch."),
        optional("limits", Kind::Table(&LIMITS), "the defaults", "What the plugin may use."),
    ],
    others: Others::Plugin,
    not_offered: &[
        ("tables", "take the key out: every sink gets all captured tables"),
        ("on-error", "take the key out: a row that a sink refuses stops the pipeline"),
        ("schema-change", "take the key out: a change of a captured table's columns stops the pipeline"),
    ],
};

static ALLOW: Section = Section {
    name: "[sink.allow]",
    about: "What the plugin may touch: nothing that is not listed.",
    keys: &[
        optional("store", Kind::Texts, "none", "Names of `[storage.NAME]` roots."),
        default("stdout", Kind::Flag, "false", "May print on the host's standard output."),
    ],
    others: Others::Refused,
    not_offered: &[
        ("tcp", "network access of plugins is not offered yet: take the key out"),
        ("http", "network access of plugins is not offered yet: take the key out"),
    ],
};

static LIMITS: Section = closed("[sink.limits]", "What each instance of the plugin may use.", LIMIT_KEYS);

const LIMIT_KEYS: &[Key] = &[
    default("memory", Kind::Size { min: MIB, max: 4 * GIB }, "512MiB", "Linear memory."),
    default("table-elements", Kind::Count { min: 1, max: 10_000_000 }, "100000", "Elements of its tables."),
    default("call-timeout", seconds(1, DAY), "5m", "Time of one call."),
    default(
        "output",
        Kind::Size { min: 64 * KIB, max: 4 * GIB },
        "256MiB",
        "Bytes that one call may hand back or make the host allocate.",
    ),
    default("handles", Kind::Count { min: 1, max: 1_000_000 }, "1000", "Handles of host resources open at once."),
    default(
        "log-lines-per-second",
        Kind::Count { min: 0, max: 1_000_000 },
        "100",
        "Log lines a second; more are counted and dropped.",
    ),
];

static STORAGE: Section = Section {
    name: "[storage.NAME]",
    about: "A root that plugins may be granted by name. They never see its address.",
    keys: &[
        required("url", Kind::Text, "`file:///absolute/path`, or `s3://bucket/prefix` of a store with S3's API."),
        optional("endpoint", Kind::Text, "Amazon's", "Of a bucket: address of the store, `https://host:port`."),
        optional("region", Kind::Text, "`us-east-1`", "Of a bucket: its region."),
        optional("access-key-id", Kind::Text, "required for a bucket", "Who we are to the store."),
        optional("secret-access-key", Kind::Secret, "required for a bucket", "The access key's secret."),
        optional(
            "allow-http",
            Kind::Flag,
            "`false`",
            "Of a bucket: whether `endpoint` may be an address without encryption.",
        ),
    ],
    others: Others::Refused,
    not_offered: &[
        ("session-token", "keys that end by themselves are not offered yet: use a key of its own for this pipeline"),
        ("anonymous", "access without a key is not offered: what is written needs an owner"),
    ],
};

static CHECKPOINT: Section = closed(
    "[checkpoint]",
    "When and where checkpoints are made.",
    &[
        default(
            "interval",
            Kind::Duration { min: Duration::from_millis(10), max: Duration::from_secs(DAY) },
            "10s",
            "Time between the starts of two checkpoints.",
        ),
        default("timeout", seconds(1, 7 * DAY), "10m", "How long one may take before the pipeline restarts."),
        default(
            "min-pause",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(DAY) },
            "0s",
            "Time between the end of one and the start of the next at least.",
        ),
        default("retained", Kind::Count { min: 1, max: 1_000 }, "3", "Committed records kept."),
        default(
            "tolerable-failures",
            Kind::Count { min: 0, max: 1_000 },
            "0",
            "Failed checkpoints in a row before the pipeline restarts.",
        ),
        required(
            "store",
            Kind::Text,
            "Where the pipeline's checkpoints lie, `file:///absolute/path` or `storage:NAME/path`; one pipeline each.",
        ),
        optional(
            "folder",
            Kind::Path,
            "`store`, where that is a folder",
            "Folder of this machine for the lock and the control socket.",
        ),
    ],
);
