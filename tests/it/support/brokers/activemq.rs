//! ActiveMQ Classic, as its package has it but for the place, the port and how much memory it takes.

use std::{fs, path::Path, process::Command, sync::OnceLock};

use super::Broker;

/// Where the package puts the program.
const HOME: &str = "/usr/share/activemq";

/// ActiveMQ Classic: stores messages in `KahaDB`, makes destinations when they are used.
#[derive(Debug)]
pub(crate) struct ActiveMq;

impl ActiveMq {
    /// One of the caller's own.
    #[track_caller]
    pub(crate) fn start() -> Broker {
        assert!(
            Path::new(HOME).is_dir(),
            "no ActiveMQ in {HOME} (Debian package activemq)"
        );
        Broker::start("ActiveMQ", prepare)
    }

    /// The one that all tests share, started when it is first needed.
    pub(crate) fn shared() -> &'static Broker {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }
}

fn prepare(directory: &Path, port: u16) -> Command {
    let settings = directory.join("conf");
    for part in [&settings, &directory.join("tmp")] {
        fs::create_dir(part).expect("can be made");
    }
    let write = |name: &str, text: String| fs::write(settings.join(name), text);
    write("activemq.xml", beans(directory, port)).expect("can be written");
    write("log4j.properties", LOGGING.to_owned()).expect("can be written");
    command(directory)
}

fn beans(directory: &Path, port: u16) -> String {
    let data = directory.join("data");
    let data = data.display();
    format!(
        r#"<beans xmlns="http://www.springframework.org/schema/beans"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans
    http://www.springframework.org/schema/beans/spring-beans.xsd
    http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="test" dataDirectory="{data}"
    useJmx="false" schedulerSupport="false">
    <persistenceAdapter>
      <kahaDB directory="{data}/kahadb"/>
    </persistenceAdapter>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"#
    )
}

const LOGGING: &str = "\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1}: %m%n
";

fn command(directory: &Path) -> Command {
    let place = |name: &str| directory.join(name).display().to_string();
    let mut command = Command::new("java");
    command
        .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        .arg("-XX:-UsePerfData")
        .arg(format!("-Dactivemq.home={HOME}"))
        .arg(format!("-Dactivemq.base={}", directory.display()))
        .arg(format!("-Dactivemq.conf={}", place("conf")))
        .arg(format!("-Dactivemq.data={}", place("data")))
        .arg(format!("-Djava.io.tmpdir={}", place("tmp")))
        .arg("--add-opens=java.base/java.lang=ALL-UNNAMED")
        .arg("-cp")
        .arg(format!(
            "{}:{HOME}/lib/*:{HOME}/lib/optional/*",
            place("conf")
        ))
        .args(["org.apache.activemq.console.Main", "start"])
        .arg(format!("xbean:file:{}", place("conf/activemq.xml")));
    command
}
