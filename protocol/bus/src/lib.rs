//! The bus handle, the embedded queue manager, and STOMP 1.2 client and server.
