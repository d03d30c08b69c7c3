use pillarbox_messages::{CollectionId, ComponentId, Operation};

use super::*;
use crate::BusUrl;

/// A small repository; the tests spoil one line at a time.
const GOOD: &str = r#"[repository]
name = "R"
[bus]
url = "embedded:"
[destinations]
#
[[collections]]
id = "books"
pillars = ["north", "south"]
#collection
[[collections.slas]]
id = "gold"
clients = ["c"]
#sla
[[collections]]
id = "maps"
pillars = ["north"]
"#;

fn load(text: &str) -> Result<Repository, SettingsError> {
    Repository::from_toml_str(text, "repository.toml")
}

/// What is said when these parts of the good text are replaced.
fn said(replacements: &[(&str, &str)]) -> String {
    let mut text = GOOD.to_owned();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    match load(&text) {
        Ok(_) => "fine".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn one_line_for_each_mistake() {
    assert_eq!(said(&[]), "fine");
    for (from, to, lines) in include!("tests/lines.rs") {
        assert_eq!(said(&[(from, to)]), lines, "{from} -> {to}");
    }
}

#[test]
fn temporary_queues_are_refused_with_reference_naming() {
    let reference = "\nscheme = \"reference\"\nbase = \"topic://q\"\nalarm_destination = \"topic://q.alarms\"\n";
    let own = "pillar_destinations = { south = \"temporary-queue://s\" }";
    assert_eq!(
        said(&[("\n#\n", reference), ("#collection", own)]),
        "repository.toml:12: the temporary queue of `south` can't be reached by peers with the reference scheme; \
         remove it, or remove scheme = \"reference\""
    );
}

#[test]
fn a_clients_name_is_no_pillars_with_reference_naming() {
    let reference = "\nscheme = \"reference\"\nbase = \"topic://q\"\nalarm_destination = \"topic://q-alarms\"\n";
    for (client, holder) in [
        ("north-contributor", "the pillar `north` of `books`"),
        ("alarms", "the alarms of `books`"),
    ] {
        let clients = format!("clients = [\"{client}\"]");
        assert_eq!(
            said(&[("\n#\n", reference), ("clients = [\"c\"]", &clients)]),
            format!(
                "repository.toml:15: `topic://q-{client}` would be the destination of {holder} and of the client \
                 `{client}`; change an id or a template in `destinations`"
            )
        );
    }
}

#[test]
fn whatever_is_left_out_has_its_default() {
    let repository = load(GOOD).unwrap();
    assert_eq!(repository.name, "R");
    assert_eq!(repository.default_checksum, ChecksumType::Md5);
    assert!(repository.file_id_pattern.is_none());
    assert!(repository.require.checksum_for_new_file);
    assert!(repository.require.checksum_for_destructive);
    assert!(!repository.require.message_authentication);
    assert!(!repository.require.operation_authorization);
    assert_eq!(repository.timeouts, Timeouts::default());
    assert_eq!(repository.timeouts.identification.as_secs(), 180);
    assert_eq!(repository.timeouts.operation.as_secs(), 3600);
    assert_eq!(repository.exchange_url, None);
    let (_, sla) = repository.sla("gold").unwrap();
    assert_eq!(sla.pillars, ["north", "south"].map(ComponentId::from));
    assert_eq!(sla.operations, Operation::ALL);
    assert_eq!(sla.min_copies, None);
}

#[test]
fn everything_set_is_read() {
    let text = include_str!("../../../testdata/repository-full.toml");
    let repository = load(text).unwrap();
    assert_eq!(repository.default_checksum, ChecksumType::Sha256);
    assert!(
        repository
            .file_id_pattern
            .as_ref()
            .is_some_and(|pattern| pattern.matches("ab_1"))
    );
    assert!(!repository.require.checksum_for_destructive);
    assert_eq!(
        repository.status_contributors,
        ["monitor", "integrity"].map(ComponentId::from)
    );
    assert_eq!(repository.audit_contributors, ["integrity"]);
    assert!(matches!(&repository.bus.url, BusUrl::Failover { urls, .. } if urls.len() == 2));
    assert_eq!(repository.exchange_url.as_deref(), Some("http://x:8181/"));
    assert_eq!(repository.timeouts.operation.as_secs(), 9000);
    let (collection, sla) = repository.sla("gold").unwrap();
    assert_eq!(collection.name.as_deref(), Some("The books"));
    assert_eq!(sla.operations, [Operation::PutFile, Operation::GetFileIds]);
    assert_eq!(
        (sla.min_copies, sla.alarm_to.as_slice()),
        (Some(2), &["ops".to_owned()][..])
    );
    assert_eq!(sla.time_to_deliver.unwrap().as_secs(), 10);
    assert_eq!(sla.max_checksum_age.unwrap().as_secs(), 90 * 86_400);
    assert_eq!(
        repository.timeouts_for(Some("gold")).operation.as_secs(),
        60
    );
    assert_eq!(repository.timeouts_for(Some("silver")), repository.timeouts);
    assert_eq!(repository.timeouts_for(None), repository.timeouts);
    let north = ComponentId::from("North");
    assert_eq!(repository.collections_of_pillar(&north).count(), 2);
    assert_eq!(repository.warnings.len(), 1);
    assert!(repository.warnings[0].starts_with("2 service level agreement(s)"));
}

/// The patterns of public settings files, and what Java says about names.
#[test]
fn file_id_patterns_keep_javas_meaning() {
    let names = [
        "ab_1",
        "a",
        "A[z]",
        "a\tb",
        &"x".repeat(201),
        "name\u{a0}",
        "x\u{2028}y",
        "AB[z]x",
        "dir/b_1",
    ];
    for (pattern, answers) in [
        (r"[a-zA-Z_\.\-0-9]{1,250}", "YYnnYnnnn"),
        (r"[a-zA-z0-9\-_.]{5,250}", "nnnnYnnYn"),
        (r"[a-zA-Z0-9\-_.\/]{5,250}", "nnnnYnnnY"),
        (r"[a-zA-Z/_\.\-0-9]+", "YYnnYnnnY"),
        (r"[a-zA-Z_\.\-0-9]+", "YYnnYnnnn"),
        (
            r"^[^ \./\p{Cntrl}][^\p{Cntrl}]{0,199}[^\s\p{Cntrl}]$",
            "YnYnYYYYY",
        ),
    ] {
        let key = format!("name = \"R\"\nfile_id_pattern = '{pattern}'");
        let repository = load(&GOOD.replacen("name = \"R\"", &key, 1)).unwrap();
        let compiled = repository.file_id_pattern.unwrap();
        let said: String = names
            .iter()
            .map(|name| if compiled.matches(name) { 'Y' } else { 'n' })
            .collect();
        assert_eq!(said, answers, "{pattern}");
        let warned = repository
            .warnings
            .iter()
            .any(|warning| warning.contains("A-z"));
        assert_eq!(warned, pattern.contains("A-z"), "{pattern}");
    }
}

#[test]
fn names_by_default() {
    let repository = load(GOOD).unwrap();
    let (books, north, c) = (
        CollectionId::from("books"),
        ComponentId::from("north"),
        ComponentId::from("c 1"),
    );
    let names = repository.destinations(&books);
    assert_eq!(names.collection().to_string(), "topic://books");
    assert_eq!(names.pillar(&north).to_string(), "queue://books.north");
    assert_eq!(
        names.client(&c, None).to_string(),
        "topic://books.client.c 1"
    );
    assert_eq!(names.alarms(), [Destination::topic("books.alarms")]);
    assert_eq!(names.alarms_of("gold"), Destination::topic("books.alarms"));
    assert!(names.fits_client_template(&Destination::topic("books.client.anyone")));
    assert!(!names.fits_client_template(&Destination::topic("maps.client.anyone")));
    assert!(repository.fits_client_template(&Destination::topic("maps.client.anyone")));
    assert!(!repository.fits_client_template(&Destination::topic("books.north")));
    let all: Vec<String> = repository
        .bus_destinations()
        .iter()
        .map(Destination::to_string)
        .collect();
    assert_eq!(
        all,
        [
            "topic://books",
            "queue://books.north",
            "queue://books.south",
            "topic://books.alarms",
            "topic://maps",
            "queue://maps.north",
            "topic://maps.alarms"
        ]
    );
    let durable = repository.durable_subscriptions(&"watch".into());
    let durable: Vec<_> = durable
        .iter()
        .map(|it| (it.client_id.as_str(), it.name.as_str()))
        .collect();
    let expected = [
        ("watch", "watch@topic://books.alarms"),
        ("watch", "watch@topic://maps.alarms"),
    ];
    assert_eq!(durable, expected);
    assert!(!repository.has_reference_naming());
}

#[test]
fn names_of_one_collection_pillar_and_agreement() {
    let repository = load(include_str!("../../../testdata/repository-full.toml")).unwrap();
    let names = repository.destinations(&"Books".into());
    assert_eq!(
        names.pillar(&"North".into()).to_string(),
        "topic://books.North"
    );
    assert_eq!(
        names.pillar(&"South".into()).to_string(),
        "temporary-queue://south"
    );
    assert_eq!(
        names.client(&"x".into(), Some("gold")).to_string(),
        "topic://Books.gold"
    );
    assert_eq!(
        names.client(&"ingest-1".into(), None).to_string(),
        "topic://Books.gold"
    );
    assert_eq!(
        names.client(&"reader".into(), None).to_string(),
        "topic://in.Books.client"
    );
    assert_eq!(
        names.client(&"other".into(), None).to_string(),
        "topic://in.Books.client"
    );
    let alarms = ["in.Books.alarms", "Books.gold"].map(Destination::topic);
    assert_eq!(names.alarms(), alarms);
    assert_eq!(
        names.alarms_of("silver"),
        Destination::topic("in.Books.alarms")
    );
    assert!(names.fits_client_template(&Destination::topic("Books.gold")));
    assert!(names.fits_client_template(&Destination::topic("in.Books.client")));
    assert!(!names.fits_client_template(&Destination::topic("in.Books.client.x")));
    assert!(
        !repository
            .bus_destinations()
            .iter()
            .any(|it| it.name() == "south")
    );
}

#[test]
fn names_of_the_java_system() {
    let repository = load(include_str!("../../../testdata/repository-reference.toml")).unwrap();
    let names = repository.destinations(&"books".into());
    assert_eq!(names.collection(), Destination::topic("quick-start"));
    let pillar = names.pillar(&"file1-pillar".into());
    assert_eq!(
        pillar,
        Destination::topic("quick-start-file1-pillar-contributor")
    );
    let client = names.client(&"root's cmdline client".into(), None);
    assert_eq!(
        client,
        Destination::topic("quick-start-root's cmdline client")
    );
    assert_eq!(names.alarms(), [Destination::topic("quick-start.alarms")]);
    assert!(names.fits_client_template(&client));
    assert!(!names.fits_client_template(&Destination::topic("quick-start.alarms")));
    let all: Vec<String> = repository
        .bus_destinations()
        .iter()
        .map(Destination::to_string)
        .collect();
    assert_eq!(
        all,
        [
            "topic://quick-start",
            "topic://quick-start-file1-pillar-contributor",
            "topic://quick-start-checksum-pillar-contributor",
            "topic://quick-start.alarms"
        ]
    );
    let durable = repository.durable_subscriptions(&"alarm-service".into());
    assert_eq!(durable.len(), 1);
    assert_eq!(durable[0].name, "alarm-service");
    assert!(repository.has_reference_naming());
}

/// As JMS code names topics.
#[test]
fn a_destination_of_the_java_system_may_be_a_bare_name() {
    let reference =
        "\nscheme = \"reference\"\nbase = \"TEST-TOPIC\"\nalarm_destination = \"ALARMS\"\n";
    let repository = load(&GOOD.replacen("\n#\n", reference, 1)).unwrap();
    let names = repository.destinations(&"books".into());
    assert_eq!(names.collection(), Destination::topic("TEST-TOPIC"));
    assert_eq!(
        names.pillar(&"north".into()),
        Destination::topic("TEST-TOPIC-north-contributor")
    );
    assert_eq!(names.alarms(), [Destination::topic("ALARMS")]);
}

#[test]
fn one_alarm_topic_for_each_agreement() {
    let template = "\nalarms = \"topic://{collection}.{sla}.alarms\"\n";
    let maps = "id = \"maps\"\ndestinations = { alarms = \"topic://maps.alarms\" }";
    let mut text = GOOD
        .replacen("\n#\n", template, 1)
        .replacen("id = \"maps\"", maps, 1);
    text = text.replacen("#sla", "[[collections.slas]]\nid = \"silver\"", 1);
    let repository = load(&text).unwrap();
    let names = repository.destinations(&"books".into());
    let expected = ["books.gold.alarms", "books.silver.alarms"].map(Destination::topic);
    assert_eq!(names.alarms(), expected);
    assert_eq!(
        names.alarms_of("silver"),
        Destination::topic("books.silver.alarms")
    );
    assert_eq!(repository.alarm_destinations().len(), 3);
}

#[test]
fn every_table_has_its_keys() {
    use crate::{node::RawNode, reading::Shape};
    for path in RawRepository::LISTS {
        assert!(!RawRepository::keys(path).is_empty(), "{path:?}");
    }
    assert!(RawRepository::keys(&["collections", "slas", "destinations"]).contains(&"alarms"));
    assert!(RawNode::keys(&["pillars"]).contains(&"type"));
}

#[test]
fn a_request_waits_for_its_pillar_until_it_expires_or_nobody_waits_for_the_answer() {
    let text = r#"
[repository]
name = "Example archive"
[bus]
url = "embedded:"
[timeouts]
operation = "2h"
conversation = "7h"
[[collections]]
id = "books"
pillars = ["north"]
[[collections.slas]]
id = "slow"
clients = ["ingest-1"]
operation_timeout = "3h"
[[collections.slas]]
id = "quick"
clients = ["ingest-2"]
operation_timeout = "1m"
[[collections]]
id = "maps"
pillars = ["north"]
"#;
    let hours = |text: &str| {
        let repository = load(text).unwrap();
        ["books", "maps"].map(|id| repository.longest_wait_for_pillar(&id.into()).as_secs() / 3_600)
    };
    assert_eq!(hours(text), [3, 2]);
    let reference = format!(
        "{text}[destinations]\nscheme = \"reference\"\nbase = \"topic://q\"\nalarm_destination = \"topic://q.alarms\"\n"
    );
    assert_eq!(hours(&reference), [7, 7]);
}

/// What a bus takes bounds names that ids and templates make together.
#[test]
fn names_that_no_bus_takes_are_refused() {
    let (collection, pillar) = ("b".repeat(60), "n".repeat(200));
    let ids = [
        ("id = \"books\"", format!("id = \"{collection}\"")),
        ("\"north\", \"south\"", format!("\"{pillar}\", \"south\"")),
    ];
    let ids: Vec<(&str, &str)> = ids.iter().map(|(from, to)| (*from, to.as_str())).collect();
    assert_eq!(
        said(&ids),
        format!(
            "repository.toml:9: the destination of the pillar `{pillar}` of `{collection}` would have a name of 261 \
             bytes, of which a bus takes 255; shorten an id, or a template in `destinations`"
        )
    );
    assert_eq!(said(&ids[1..]), "fine", "206 bytes");
}

/// ActiveMQ would take it for two names.
#[test]
fn a_name_that_no_bus_takes_for_one_is_told_of() {
    let reference =
        "\nscheme = \"reference\"\nbase = \"topic://q,r\"\nalarm_destination = \"topic://a\"\n";
    let text = GOOD.replacen("#\n", reference, 1);
    let error = load(&text).unwrap_err().to_string();
    assert!(
        error.contains("would be called `q,r`, which contains one of , * > # / or a control character; change an id"),
        "{error}"
    );
}

#[test]
fn a_client_whose_name_no_bus_takes_is_told_of() {
    let problem = |collection: usize, client: usize| {
        let text = GOOD.replacen("\"books\"", &format!("\"{}\"", "b".repeat(collection)), 1);
        let repository = load(&text).unwrap();
        repository.client_problem(&"c".repeat(client).as_str().into())
    };
    assert_eq!(problem(5, 200), None);
    // `<collection>.client.<client>`
    assert_eq!(problem(47, 200), None);
    let (cause, next_step) = problem(48, 200).unwrap();
    assert!(
        cause.contains("256 bytes, of which a bus takes 255"),
        "{cause}"
    );
    assert!(next_step.starts_with("shorten an id"), "{next_step}");
}
