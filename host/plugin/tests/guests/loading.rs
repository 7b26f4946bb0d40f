//! What is refused at load, and in which words.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use cdchost_connector::SystemClock;
use cdchost_model::Generation;
use cdchost_plugin::{EngineOptions, PluginEngine, PluginError, PluginKind};
use tempfile::TempDir;

use crate::guest::Guest;
use crate::stage::{engine, load, refusal, spec};

/// One refusal: the bytes, and words that must stand in it.
async fn check(bytes: &[u8], words: &[&str]) {
    let found = refusal(&engine(), bytes).await;
    for word in words {
        assert!(found.contains(word), "{word:?} is missing in: {found}");
    }
}

#[tokio::test]
async fn files_that_are_no_component_are_told_apart() {
    check(b"", &["empty"]).await;
    check(b"(component)", &["text file"]).await;
    check(&[0; 1000], &["nothing but zero bytes"]).await;
    check(b"\x01\x02\x03\x04", &["not those of a WASM file"]).await;
    check(b"PK\x03\x04....", &["zip archive"]).await;
    check(b"\x7fELF\x02\x01", &["native code"]).await;
    check(b"\0asm\x01\0\0\0", &["core module, not a component"]).await;
    check(b"\0as", &["cut off"]).await;
    check(&[0xff; 100], &["not those of a WASM file"]).await;
    let whole = Guest::sink().build();
    check(&whole[..whole.len() / 2], &["damaged or cut off"]).await;
}

#[tokio::test]
async fn damaged_bytes_are_refused_and_never_end_the_host() {
    let engine = engine();
    let whole = Guest::sink().build();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("guest.wasm");
    for step in 1..60 {
        let mut damaged = whole.clone();
        let at = step * whole.len() / 60;
        damaged[at] ^= 0x41;
        for bytes in [&damaged[..], &whole[..at]] {
            fs::write(&path, bytes).unwrap();
            // Some damage is to names and texts, and harmless; a fault of the engine itself is not.
            let error = engine.load(&path, None).await.err();
            assert!(!matches!(&error, Some(PluginError::Engine(_))), "at {at}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_component_that_is_no_plugin_is_told_so() {
    check(&wat::parse_str("(component)").unwrap(), &["exports no kind of plugin", "exports nothing"]).await;
}

#[tokio::test]
async fn another_version_of_the_contract_is_named() {
    let newer = Guest::sink().edit_wit("@0.1.0", "@0.3.0");
    check(&newer.build(), &["built for cdchost:plugin 0.3.0", "this host speaks 0.1"]).await;
}

#[tokio::test]
async fn everything_missing_is_named_at_once() {
    let own = "world half { import types; import sink-types; export sink-writer; }";
    let half = Guest::sink()
        .world("half", Some(own))
        .edit_wit("  flush: func(table: table-id) -> result<_, plugin-error>;", "");
    let words = ["does not export cdchost:plugin/metadata", "does not export cdchost:plugin/sink-committer"];
    check(&half.build(), &[&words[..], &["its sink-writer lacks the function flush"]].concat()).await;
}

#[tokio::test]
async fn imports_that_are_not_offered_are_named() {
    let state =
        Guest::sink().head("(import \"cdchost:plugin/state@0.1.0\" \"get\" (func (param i32 i32 i32 i32 i32)))");
    check(&state.build(), &["cdchost:plugin/state@0.1.0", "keyed state is not offered yet"]).await;
    let newer = Guest::sink()
        .edit_wit("  now-micros: func() -> u64;", "  now-micros: func() -> u64;\n  weather: func() -> u32;")
        .head("(import \"cdchost:plugin/runtime@0.1.0\" \"weather\" (func (result i32)))");
    check(&newer.build(), &["calls weather of cdchost:plugin/runtime", "newer"]).await;
}

#[tokio::test]
async fn other_kinds_of_plugin_are_recognised() {
    let functions = Guest::sink().world("function-plugin", None);
    check(&functions.build(), &["is a function library, which cannot be used as a sink, transform or route"]).await;
}

#[tokio::test]
async fn a_function_of_another_shape_is_refused() {
    let odd = Guest::sink().edit_wit("close: func(discard: bool);", "close: func(discard: string);");
    check(&odd.build(), &["cannot be started", "expected `bool` found `string`"]).await;
}

#[tokio::test]
async fn a_guest_that_never_starts_or_traps_at_the_start_is_refused() {
    let begin = |body: &str| Guest::sink().head(&format!("(func $begin {body}) (start $begin)")).build();
    check(&begin("unreachable"), &["cannot be started", "unreachable"]).await;
    check(&begin("(loop $for_ever (br $for_ever))"), &["did not return from instantiate within 500ms"]).await;
}

#[tokio::test]
async fn the_pinned_digest_is_held() {
    let (engine, folder) = (engine(), TempDir::new().unwrap());
    let path = Guest::sink().write(folder.path(), "guest");
    let plugin = engine.load(&path, None).await.unwrap();
    assert_eq!(plugin.kind(), PluginKind::Sink);
    let digest: String = plugin.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    engine.load(&path, Some(&digest.to_uppercase())).await.unwrap();
    let error = engine.load(&path, Some(&"0".repeat(64))).await.unwrap_err();
    assert!(matches!(&error, PluginError::Digest { found, .. } if *found == digest), "{error}");
}

#[tokio::test]
async fn a_file_of_absurd_size_is_not_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("guest.wasm");
    fs::File::create(&path).unwrap().set_len(200 << 20).unwrap();
    let error = engine().load(&path, None).await.unwrap_err();
    assert!(matches!(error, PluginError::TooLarge { .. }), "{error}");
}

#[test]
fn plugins_are_found_by_name_and_nowhere_else() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("two")).unwrap();
    for file in ["one.wasm", "two/two.wasm"] {
        fs::write(folder.path().join(file), b"").unwrap();
    }
    let found = |name: &str| PluginEngine::locate(folder.path(), name);
    assert_eq!(found("one").unwrap(), folder.path().join("one.wasm"));
    assert_eq!(found("two").unwrap(), folder.path().join("two/two.wasm"));
    assert!(matches!(found("three"), Err(PluginError::NotFound { .. })));
    for name in ["", "../one", "two/two", "a.b", "/etc/passwd"] {
        assert!(matches!(found(name), Err(PluginError::Name { .. })), "{name}");
    }
}

#[tokio::test]
async fn the_manifest_comes_from_describe_where_there_is_no_section() {
    let (engine, folder) = (engine(), TempDir::new().unwrap());
    // name, version, description, config-schema as text at 9800 and on.
    let told = Guest::sink().without_manifest().head("(data (i32.const 9800) \"teller1.2{}\")").body(
        "cdchost:plugin/metadata@0.1.0",
        "describe",
        "(i32.store (i32.const 9900) (i32.const 9800)) (i32.store (i32.const 9904) (i32.const 6))
             (i32.store (i32.const 9908) (i32.const 9806)) (i32.store (i32.const 9912) (i32.const 3))
             (i32.store (i32.const 9924) (i32.const 9809)) (i32.store (i32.const 9928) (i32.const 2))
             (i32.const 9900)",
    );
    let plugin = load(&engine, told).await;
    assert_eq!((plugin.manifest().name.as_str(), plugin.manifest().version.as_str()), ("teller", "1.2"));

    // One that says nothing cannot be used.
    let path = Guest::sink().without_manifest().write(folder.path(), "mute");
    let error = engine.load(&path, None).await.unwrap_err();
    assert!(matches!(&error, PluginError::Manifest { .. }), "{error}");
}

#[tokio::test]
async fn compiled_code_is_kept_checked_and_mended() {
    let folder = TempDir::new().unwrap();
    let path = Guest::sink().write(folder.path(), "guest");
    let cache = folder.path().join("code");
    load_and_run(&cache, &path).await;
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    let file = only_file(&cache);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let whole = fs::read(&file).unwrap();

    // Taken as it is: what was compiled once is not written again.
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    load_and_run(&cache, &path).await;
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);

    // What has not been written for long is removed.
    let old = cache.join("gone.code");
    let month = std::time::Duration::from_secs(31 * 24 * 3600);
    fs::File::create(&old).unwrap().set_modified(std::time::SystemTime::now() - month).unwrap();
    load_and_run(&cache, &path).await;
    assert!(!old.exists() && file.exists());

    // A bit flipped in the code, a file cut off, an empty one: compiled anew.
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [flipped.as_slice(), &whole[..whole.len() - 1], &[]] {
        fs::write(&file, damaged).unwrap();
        load_and_run(&cache, &path).await;
        assert!(fs::read(&file).unwrap().len() >= whole.len() - 64, "not mended");
        assert_ne!(fs::read(&file).unwrap(), damaged);
    }
}

#[tokio::test]
async fn a_cache_folder_that_others_can_write_to_is_not_used() {
    let folder = TempDir::new().unwrap();
    let path = Guest::sink().write(folder.path(), "guest");
    let cache = folder.path().join("code");
    fs::create_dir(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    load_and_run(&cache, &path).await;
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_replaced_later_changes_nothing() {
    let (engine, folder) = (engine(), TempDir::new().unwrap());
    let path = Guest::sink().write(folder.path(), "guest");
    let plugin = engine.load(&path, None).await.unwrap();
    fs::write(&path, b"something else").unwrap();
    plugin.sink(spec()).unwrap().committer(Generation(1)).await.unwrap().open().await.unwrap();
}

async fn load_and_run(cache: &Path, path: &Path) {
    let mut options = EngineOptions::new(Arc::new(SystemClock::default()));
    options.instances_max = 2;
    options.cache = Some(cache.into());
    let plugin = PluginEngine::new(options).unwrap().load(path, None).await.unwrap();
    plugin.sink(spec()).unwrap().committer(Generation(1)).await.unwrap().open().await.unwrap();
}

fn only_file(folder: &Path) -> std::path::PathBuf {
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.into_iter().next().unwrap()
}
