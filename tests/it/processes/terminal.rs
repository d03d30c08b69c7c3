//! What a person sees on a terminal while a file is moved, and a program on a pipe does not.

use std::{
    io::Read as _,
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Instant,
};

use crate::support::{
    PATIENCE,
    process::{stderr, succeed},
    site::Site,
};

/// More than lies between two sockets.
const LARGE_BYTES: usize = 48 << 20;

/// A client of the site that offers files on an exchange which takes none of them.
fn client_of_a_busy_exchange(site: &Site) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap();
    let node = format!(
        "data = \"var\"\n[client]\nexchange = \"http://{host}/\"\n[exchange]\nhosts = [\"{host}\"]\n"
    );
    site.settings("client", &node);
    listener
}

/// The program on a terminal of its own, ended on drop.
struct OnTerminal(Child);

impl OnTerminal {
    fn start(command: &Command) -> Self {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
        let line = format!("stty cols 160 rows 24; exec {}", words.join(" "));
        let mut script = Command::new("script");
        script.args(["-qefc", &line, "/dev/null"]);
        script.stdin(Stdio::null()).stdout(Stdio::piped());
        Self(script.spawn().expect("script, of util-linux"))
    }

    /// Waits until all of these have been shown.
    #[track_caller]
    fn wait_for(&mut self, parts: &[&str]) {
        let mut screen = self.0.stdout.take().expect("piped");
        let (sender, arriving) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                let _ = sender.send(buffer[..count].to_vec());
            }
        });
        let deadline = Instant::now() + PATIENCE;
        let mut shown = String::new();
        while !parts.iter().all(|part| shown.contains(part)) {
            let rest = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = arriving.recv_timeout(rest) else {
                panic!("not shown: {parts:?}\n{shown}")
            };
            shown.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // The program loses its terminal, and ends.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_bytes_of_a_transfer_are_shown_on_a_terminal() {
    let site = Site::new(&["north"]);
    let _parts = ["hub", "north"].map(|part| site.start(part));
    let exchange = client_of_a_busy_exchange(&site);
    let large = site.file("large.bin", &vec![7; LARGE_BYTES]);
    let command = site.prepare("put-file", ["-f".as_ref(), large.as_os_str()]);
    let mut terminal = OnTerminal::start(&command);
    let _connection = exchange.accept().unwrap();
    terminal.wait_for(&["MiB/48.00 MiB", "PUT_FILE for file large.bin"]);
}

#[test]
fn nothing_but_results_goes_to_a_pipe() {
    let site = Site::new(&["north"]);
    let _parts = ["hub", "north"].map(|part| site.start(part));
    let large = site.file("large.bin", &vec![7; LARGE_BYTES]);
    let put = site.run("put-file", ["-f".as_ref(), large.as_os_str()]);
    assert_eq!(succeed(&put), "");
    assert_eq!(stderr(&put), "large.bin stored on 1 pillar\n");
    let get = site.run("get-file", ["-i", "large.bin", "-l", "copy"]);
    assert_eq!(succeed(&get), "large.bin retrieved\n");
    assert_eq!(stderr(&get), "");
    // What was there is replaced, and told of.
    let again = site.run("get-file", ["-i", "large.bin", "-l", "copy"]);
    succeed(&again);
    assert_eq!(
        stderr(&again),
        "'copy' was there before and has been replaced\n"
    );
    // For a program the summary is no result: it goes where the others go.
    let again = ["-i", "large.bin", "-l", "other", "--json"];
    let again = site.run("get-file", again);
    assert_eq!(succeed(&again).lines().count(), 1);
    assert_eq!(stderr(&again), "large.bin retrieved\n");
}
