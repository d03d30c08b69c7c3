use std::fs;

use super::*;

const REPOSITORY: &str = include_str!("../examples/repository.toml");
const NODE: &str = include_str!("../examples/node.toml");

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn said(files: &[(&str, &str)]) -> String {
    let directory = directory(files);
    let error = load(directory.path()).unwrap_err().to_string();
    error.replace(&format!("{}", directory.path().display()), "DIR")
}

#[test]
fn the_examples_load_together() {
    let directory = directory(&[(REPOSITORY_FILE, REPOSITORY), (NODE_FILE, NODE)]);
    let (repository, node) = load(directory.path()).unwrap();
    assert_eq!(repository.collections.len(), 1);
    assert_eq!(node.data, directory.path().join("var"));
    assert_eq!(repository.warnings.len(), 1);
}

/// By these two files alone a process meets the Java components, under the names that they expect.
#[test]
fn the_example_of_joining_a_java_collection_loads() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/activemq");
    let (repository, node) = load(&example).unwrap();
    assert_eq!(repository.warnings, Vec::<String>::new());
    assert!(repository.bus.to_connect().is_err());
    let url = node.effective_bus(&repository).to_connect().unwrap();
    assert_eq!(url.to_string(), "stomp://activemq.example.org:61613");
    assert!(repository.has_reference_naming());
    let pillar = &node.pillars[0].id;
    let names = repository.destinations(&"books".into());
    for (name, expected) in [
        (names.collection(), "topic://quick-start"),
        (
            names.pillar(pillar),
            "topic://quick-start-north-contributor",
        ),
        (names.client(&"kim".into(), None), "topic://quick-start-kim"),
    ] {
        assert_eq!(name.to_string(), expected);
    }
    assert_eq!(names.alarms()[0].to_string(), "topic://quick-start.alarms");
    assert_eq!(node.exchange_hosts(&repository), ["dav.example.org:80"]);
}

/// What the examples show in comments as the default is what is used without them.
#[test]
fn the_examples_tell_the_defaults() {
    let text = "[repository]\nname = \"Example archive\"\n[bus]\nurl = \"stomp://127.0.0.1:61613\"\n[[collections]]\n\
                id = \"books\"\npillars = [\"north\", \"south\", \"sums\"]\n";
    let bare = Repository::from_toml_str(text, "bare.toml").unwrap();
    let example = Repository::from_toml_str(REPOSITORY, "example.toml").unwrap();
    assert_eq!(bare.default_checksum, example.default_checksum);
    assert_eq!(bare.require, example.require);
    assert_eq!(bare.timeouts, example.timeouts);
    assert_eq!(bare.bus_destinations(), example.bus_destinations());
}

/// Each key, uncommented in the way the example shows it, is a known one.
#[test]
fn the_examples_name_every_key() {
    let keys = |text: &'static str| {
        let lines = text.lines().map(|line| line.trim_start_matches("# "));
        let names = lines.filter_map(|line| Some(line.split_once(" = ")?.0.trim().to_owned()));
        names.collect::<Vec<_>>()
    };
    assert_named::<repository::RawRepository>(&keys(REPOSITORY));
    assert_named::<node::RawNode>(&keys(NODE));
}

fn assert_named<T: reading::Shape>(shown: &[String]) {
    let tables = T::keys(&[])
        .iter()
        .flat_map(|key| [vec![*key], vec![*key, "slas"]]);
    for path in tables {
        for key in T::keys(&path)
            .iter()
            .filter(|key| T::keys(&[&path[..], &[key]].concat()).is_empty())
        {
            assert!(shown.iter().any(|it| it == key), "{path:?} {key}");
        }
    }
}

#[test]
fn a_directory_may_hold_no_node_file() {
    let directory = directory(&[(REPOSITORY_FILE, REPOSITORY)]);
    let (_, node) = load(directory.path()).unwrap();
    assert!(!node.plays_a_role());
}

#[test]
fn what_is_wrong_in_both_files_is_told_at_once() {
    let node = NODE.replacen("data", "dat", 1);
    let repository = REPOSITORY.replacen("\nchecksum =", "\nchecksums =", 1);
    assert_eq!(
        said(&[(REPOSITORY_FILE, &repository), (NODE_FILE, &node)]),
        "DIR/repository.toml:10: unknown key `repository.checksums`; did you mean `checksum`?\n\
         DIR/node.toml:11: unknown key `dat`; did you mean `data`?"
    );
}

#[test]
fn what_the_process_says_is_compared_with_the_repository() {
    let node = NODE.replacen("id = \"north\"", "id = \"norht\"", 1);
    assert_eq!(
        said(&[(REPOSITORY_FILE, REPOSITORY), (NODE_FILE, &node)]),
        "DIR/node.toml:27: unknown pillar `norht`; did you mean `north`?\n\
         DIR/node.toml:62: the agreement `books-ingest` does not name the pillar `norht`; add the pillar to it, or \
         remove it here"
    );
}

#[test]
fn files_that_can_not_be_read() {
    assert_eq!(
        said(&[]),
        "DIR/repository.toml: can't be read: No such file or directory (os error 2); write it, or name another \
         settings directory"
    );
    assert_eq!(
        said(&[("RepositorySettings.xml", "<x/>")]),
        "DIR: holds RepositorySettings.xml, which this version does not read; write a repository.toml beside it"
    );
    assert_eq!(
        said(&[(REPOSITORY_FILE, "")]),
        "DIR/repository.toml: `repository.name` is missing; add name = \"My archive\" under [repository]\n\
         DIR/repository.toml: `bus.url` is missing; add url = \"stomp://127.0.0.1:61613\" under [bus]\n\
         DIR/repository.toml: there is no collection; add [[collections]] with id and pillars"
    );
    let directory = directory(&[]);
    fs::write(directory.path().join(REPOSITORY_FILE), b"\xff\xfe").unwrap();
    let error = load(directory.path()).unwrap_err().to_string();
    assert!(error.ends_with("save it as UTF-8"), "{error}");
}

/// Wherever a file ends early, the reader says so in whole lines or finds the rest good.
#[test]
fn cut_off_files_never_break_the_reader() {
    let beginnings =
        |text: &'static str| (0..text.len()).step_by(7).filter_map(|end| text.get(..end));
    let mut refused = 0;
    for text in beginnings(REPOSITORY) {
        refused += assert_whole_lines(Repository::from_toml_str(text, "f.toml").err());
    }
    for text in beginnings(NODE) {
        refused += assert_whole_lines(Node::from_toml_str(text, "f.toml").err());
    }
    assert!(refused > 100, "{refused}");
}

fn assert_whole_lines(error: Option<SettingsError>) -> usize {
    let said = error.map(|error| error.to_string()).unwrap_or_default();
    for line in said.lines() {
        assert!(line.starts_with("f.toml") && line.contains("; "), "{said}");
    }
    said.lines().count()
}
