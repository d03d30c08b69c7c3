//! Bytes that nobody has compared yet (U78).

use pillarbox_messages::{GetFileIdsRequest, ResultingFileIds};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;

const OLD: &[u8] = b"one";

/// A server that sends the second half of its file when it is told to.
struct Halting {
    listener: TcpListener,
    content: Vec<u8>,
}

impl Halting {
    async fn listen(content: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener, content }
    }

    fn host(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    fn address(&self) -> String {
        format!("http://{}/a", self.host())
    }

    /// Answers the next request as far as the middle of the file.
    async fn begin(&self) -> TcpStream {
        let accepted = tokio::time::timeout(SOON, self.listener.accept());
        let mut stream = accepted.await.unwrap().unwrap().0;
        let mut request = [0; 4_096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let length = self.content.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let half = &self.content[..length / 2];
        stream.write_all(half).await.unwrap();
        stream
    }

    async fn end(&self, mut stream: TcpStream) {
        let half = &self.content[self.content.len() / 2..];
        stream.write_all(half).await.unwrap();
    }
}

impl Site {
    /// The files that a client is told of, with their sizes.
    async fn listed(&mut self) -> Vec<(String, u64)> {
        let request = GetFileIdsRequest {
            header: self.header(),
            audit_trail_information: None,
            pillar_id: Some("north".into()),
            file_ids: FileIds::All,
            min_timestamp: None,
            max_timestamp: None,
            max_number_of_results: None,
            result_address: None,
        };
        match self.ask(request).await.pop() {
            Some(Message::GetFileIdsFinalResponse(response)) => match response.resulting_file_ids {
                Some(ResultingFileIds::Data(data)) => {
                    let items = data.items.into_iter();
                    let told = |item: pillarbox_messages::FileIdsDataItem| {
                        (item.file_id.as_str().to_owned(), item.file_size.unwrap())
                    };
                    items.map(told).collect()
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Until the bytes that were sent are in the temporary directory.
    async fn until_half_received(&self) {
        let deadline = tokio::time::Instant::now() + SOON;
        while !self
            .lying("tmpDir")
            .iter()
            .any(|(_, bytes)| !bytes.is_empty())
        {
            assert!(
                tokio::time::Instant::now() < deadline,
                "nothing is received"
            );
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_file_is_seen_by_nobody_before_it_is_compared() {
    let halting = Halting::listen(vec![7; 300_000]).await;
    let mut site = Site::with_hosts(&[halting.host()]).await;
    let mut request = site.put_request("a.tif", b"another file").await;
    request.file_address = halting.address();
    request.file_size = None;
    site.send(request).await;
    assert_eq!(code(&site.next_answer().await), ACCEPTED);
    let stream = halting.begin().await;
    site.until_half_received().await;
    assert_eq!(site.listed().await, []);
    let address = site.server.offers().address_for("x");
    assert_eq!(
        site.refused(site.get_request("a.tif", &address)).await,
        NOT_FOUND
    );
    assert_eq!(site.lying("fileDir"), []);
    halting.end(stream).await;
    assert_eq!(code(&site.next_answer().await), NEW_CHECKSUM);
    assert_eq!(site.listed().await, []);
    site.assert_nothing_stored().await;
}

#[tokio::test]
async fn a_new_version_is_seen_by_nobody_before_it_is_compared() {
    let halting = Halting::listen(vec![7; 300_000]).await;
    let mut site = Site::with_hosts(&[halting.host()]).await;
    site.put("a.tif", OLD).await;
    let old = [("a.tif".to_owned(), OLD.len() as u64)];
    for right in [false, true] {
        let mut request = site.replace_request("a.tif", OLD, b"another file").await;
        request.file_address = halting.address();
        request.file_size = halting.content.len() as u64;
        if right {
            request.checksum_data_for_new_file = Some(md5_data(&halting.content));
        }
        site.send(request).await;
        assert_eq!(code(&site.next_answer().await), ACCEPTED);
        let stream = halting.begin().await;
        site.until_half_received().await;
        assert_eq!(site.listed().await, old);
        let address = site.server.offers().address_for("x");
        let answers = site.ask(site.get_request("a.tif", &address)).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
        assert_eq!(site.delivered(&address).await, OLD);
        // A slow transfer keeps nobody from changing other files.
        site.put("b.tif", OLD).await;
        let delete = site.delete_request("b.tif", OLD);
        assert_eq!(codes(&site.ask(delete).await), [ACCEPTED, COMPLETED]);
        halting.end(stream).await;
        let ended = code(&site.next_answer().await);
        assert_eq!(ended, if right { COMPLETED } else { NEW_CHECKSUM });
        let listed = site.listed().await;
        assert_eq!(listed != old, right, "{listed:?}");
        assert_eq!(site.lying("tmpDir"), []);
    }
}

/// Where no checksum has to be given, the pillar tells the one that it computed.
#[tokio::test]
async fn a_file_that_came_without_a_checksum_gets_one() {
    let mut site = Site::trusting().await;
    let mut request = site.put_request("a.tif", OLD).await;
    request.checksum_data_for_new_file = None;
    let answers = site.ask(request).await;
    let Some(Message::PutFileFinalResponse(response)) = answers.last() else {
        panic!("{answers:?}")
    };
    let told = response.checksum_data_for_new_file.as_ref().unwrap();
    assert_eq!(told.checksum_value, sum(OLD, &hmac()));
    let row = site.index().find(&"books".into(), &"a.tif".into()).await;
    assert_eq!(row.unwrap().unwrap().expected, md5_data(OLD).checksum_value);
}
