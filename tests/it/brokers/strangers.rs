//! A pillar of another maker: what it says is right, or nearly, but it says it in its own way.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use crate::support::{
    brokers::ActiveMq,
    joined::{Joined, Scheme},
    noise,
    process::{stderr, stdout},
    stomp::{Frame, Stomp},
};

/// How the stranger answers.
#[derive(Clone, Copy, Debug, Default)]
struct Manners {
    /// How often it says everything.
    times: usize,
    progress: Progress,
    /// What it says after it has said that the work is done.
    then: Option<&'static str>,
    /// How it spells its XML.
    spelling: Spelling,
    /// Which properties it sets.
    properties: Properties,
    persistent: bool,
    /// Whether it answers the identify request at all.
    silent: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Progress {
    #[default]
    Before,
    After,
    Never,
}

#[derive(Clone, Copy, Debug, Default)]
enum Spelling {
    #[default]
    Usual,
    Prefixes,
    Lines,
}

#[derive(Clone, Copy, Debug, Default)]
enum Properties {
    #[default]
    Type,
    All,
    /// And ones that nobody knows.
    Strange,
    None,
}

/// U61, and the peers of which users have told. The other two pillars are ours; a put to all three ends well but for
/// the stranger that never answers.
#[test]
fn u61_a_pillar_with_manners_of_its_own() {
    let site = Joined::with_timeouts(ActiveMq::shared(), Scheme::Reference, ["5s", "20s"]);
    site.play_only(&["north", "sums"]);
    let _node = site.start("node");
    for (number, (name, manners, good)) in all_manners().into_iter().enumerate() {
        put(&site, name, &format!("{number}.bin"), manners, good);
    }
}

/// Each with its name, and whether a put ends well.
#[expect(clippy::too_many_lines, reason = "a table")]
fn all_manners() -> Vec<(&'static str, Manners, bool)> {
    let usual = Manners {
        times: 1,
        ..Manners::default()
    };
    vec![
        ("usual", usual, true),
        ("says everything twice", Manners { times: 2, ..usual }, true),
        (
            "progress after the end",
            Manners {
                progress: Progress::After,
                ..usual
            },
            true,
        ),
        (
            "no progress",
            Manners {
                progress: Progress::Never,
                ..usual
            },
            true,
        ),
        (
            "completed, then failed",
            Manners {
                then: Some("FAILURE"),
                ..usual
            },
            true,
        ),
        (
            "persistent",
            Manners {
                persistent: true,
                ..usual
            },
            true,
        ),
        (
            "prefixes",
            Manners {
                spelling: Spelling::Prefixes,
                ..usual
            },
            true,
        ),
        (
            "lines and a declaration",
            Manners {
                spelling: Spelling::Lines,
                ..usual
            },
            true,
        ),
        (
            "all properties",
            Manners {
                properties: Properties::All,
                ..usual
            },
            true,
        ),
        (
            "unknown properties",
            Manners {
                properties: Properties::Strange,
                ..usual
            },
            true,
        ),
        (
            "no properties",
            Manners {
                properties: Properties::None,
                ..usual
            },
            true,
        ),
        (
            "silent",
            Manners {
                silent: true,
                ..usual
            },
            false,
        ),
    ]
}

fn put(site: &Joined, name: &str, file: &str, manners: Manners, good: bool) {
    let stranger = site.name("south");
    let over = AtomicBool::new(false);
    let mut stomp = Stomp::connect(site.port(), None);
    stomp.subscribe(&site.topic());
    stomp.subscribe(&site.requests_of("south"));
    let put = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if let Some(message) = stomp.message(Duration::from_millis(50)) {
                    answer(&mut stomp, site, manners, &message);
                }
            }
        });
        let file = site.file(file, &noise(1, 500));
        let put = site.run(
            "put-file",
            ["-v".into(), "-f".into(), file.into_os_string()],
        );
        over.store(true, Ordering::Relaxed);
        put
    });
    let told = format!("{name}\n{}\n{}", stdout(&put), stderr(&put));
    assert_eq!(
        put.status.code(),
        Some(if good { 0 } else { 255 }),
        "{told}"
    );
    let last = |line: &&str| {
        let event = line.split(": ").nth(2);
        !line.starts_with("pillarbox:")
            && matches!(event, Some("COMPLETE" | "COMPLETE:" | "FAILED"))
    };
    assert_eq!(told.lines().filter(last).count(), 1, "{told}");
    let done = told
        .lines()
        .filter(|line| line.contains("COMPONENT_COMPLETE") && line.contains(&stranger));
    assert_eq!(done.count(), usize::from(good), "{told}");
}

fn answer(stomp: &mut Stomp, site: &Joined, manners: Manners, request: &Frame) {
    let kind = request.header(TYPE).unwrap_or_default().to_owned();
    let text = request.text();
    let mine = text.contains(&format!("<PillarID>{}</PillarID>", site.name("south")));
    let say = |stomp: &mut Stomp, kind: &str, code: &str, more: &str| {
        for _ in 0..manners.times {
            send(stomp, site, manners, kind, code, more, &text);
        }
    };
    match kind.as_str() {
        "IdentifyPillarsForPutFileRequest" if !manners.silent => {
            let time = "<TimeToDeliver><TimeMeasureUnit>MILLISECONDS</TimeMeasureUnit>\
                        <TimeMeasureValue>10</TimeMeasureValue></TimeToDeliver>";
            say(
                stomp,
                "IdentifyPillarsForPutFileResponse",
                "IDENTIFICATION_POSITIVE",
                time,
            );
        }
        "PutFileRequest" if mine => {
            let address = element(&text, "FileAddress");
            let address = format!("<FileAddress>{address}</FileAddress>");
            let progress = |stomp: &mut Stomp| {
                say(
                    stomp,
                    "PutFileProgressResponse",
                    "OPERATION_ACCEPTED_PROGRESS",
                    &address,
                );
            };
            if matches!(manners.progress, Progress::Before) {
                progress(stomp);
            }
            say(
                stomp,
                "PutFileFinalResponse",
                "OPERATION_COMPLETED",
                &address,
            );
            if matches!(manners.progress, Progress::After) {
                progress(stomp);
            }
            if let Some(code) = manners.then {
                say(stomp, "PutFileFinalResponse", code, &address);
            }
        }
        _ => {}
    }
}

fn send(
    stomp: &mut Stomp,
    site: &Joined,
    manners: Manners,
    kind: &str,
    code: &str,
    more: &str,
    request: &str,
) {
    let of_request = |name: &str| element(request, name);
    let own = site.requests_of("south").replacen("/topic/", "topic://", 1);
    let pillar = site.name("south");
    let address = of_request("ReplyTo");
    let content = format!(
        "<CorrelationID>{}</CorrelationID><CollectionID>{}</CollectionID><Destination>{address}</Destination>\
         <ReplyTo>{own}</ReplyTo><From>{pillar}</From><To>{}</To>\
         <ResponseInfo><ResponseCode>{code}</ResponseCode></ResponseInfo><PillarID>{pillar}</PillarID>\
         <FileID>{}</FileID>{more}",
        of_request("CorrelationID"),
        site.collection(),
        of_request("From"),
        of_request("FileID"),
    );
    let to = of_request("From");
    let collection = site.collection();
    let mut headers = vec![("amq-msg-type", "text")];
    if manners.persistent {
        headers.push(("persistent", "true"));
    }
    if !matches!(manners.properties, Properties::None) {
        headers.push((TYPE, kind));
    }
    if matches!(manners.properties, Properties::All | Properties::Strange) {
        headers.push(("org.bitrepository.messages.to", &to));
        headers.push(("org.bitrepository.messages.collectionid", &collection));
        headers.push(("org.bitrepository.messages.signature", "null"));
    }
    if matches!(manners.properties, Properties::Strange) {
        headers.push(("x-trace", "a:b\\c"));
        headers.push(("JMSXGroupSeq", "7"));
    }
    let address = address.replacen("topic://", "/topic/", 1);
    let text = spelled(manners.spelling, kind, &content);
    stomp.send(&address, &headers, text.as_bytes());
}

fn spelled(spelling: Spelling, kind: &str, content: &str) -> String {
    let messages = "http://bitrepository.org/BitRepositoryMessages.xsd";
    let elements = "http://bitrepository.org/BitRepositoryElements.xsd";
    match spelling {
        Spelling::Usual => format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><ns2:{kind} xmlns=\"{elements}\" \
             xmlns:ns2=\"{messages}\" version=\"31\" minVersion=\"24\">{content}</ns2:{kind}>"
        ),
        Spelling::Prefixes => {
            let content = content
                .replace("</", "\u{1}")
                .replace('<', "<bro:")
                .replace('\u{1}', "</bro:");
            format!(
                "<{kind} minVersion='24' version='31' xmlns='{messages}' xmlns:bro='{elements}'>{content}</{kind}>"
            )
        }
        Spelling::Lines => format!(
            "<?xml version='1.0'?>\r\n<!-- of another maker -->\r\n<m:{kind} xmlns:m=\"{messages}\"\r\n  xmlns=\"{elements}\" \
             version=\"31\" minVersion=\"24\">\r\n  {}\r\n</m:{kind}>\r\n",
            content.replace("><", ">\r\n  <")
        ),
    }
}

/// The text of the first element of this name.
fn element(text: &str, name: &str) -> String {
    let (_, rest) = text.split_once(&format!("<{name}>")).unwrap_or_default();
    rest.split('<').next().unwrap_or_default().to_owned()
}

const TYPE: &str = "org.bitrepository.messages.type";
