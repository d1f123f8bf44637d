//! c10d's TCPStore: texts by key, by which the processes of a training find each other. torchrun's agent may hold it, or
//! the first process does.

use std::ffi::CString;
use std::ptr::null_mut;
use std::time::Duration;

use crate::ffi::{self, RawRendezvous, RawStore, answer};
use crate::{Result, TorchError};

/// Where a store is.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    /// Host that holds it.
    pub host: String,
    /// Its port there.
    pub port: u16,
    /// Whether this process holds it.
    pub server: bool,
    /// Stands before every key.
    pub prefix: String,
    /// How long a connection, and later a key, may take.
    pub timeout: Duration,
}

/// A connection to a store. While one thread waits for a key, the others wait for the connection.
#[derive(Debug)]
pub struct Store {
    pub(crate) raw: *mut RawStore,
}

// SAFETY: c10d's TCPStore locks its connection in every call; nothing of it belongs to a thread.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl Store {
    /// Connects, and where this process holds the store begins it.
    ///
    /// # Errors
    /// Nobody answers in time, or the port is taken.
    pub fn connect(at: &Rendezvous) -> Result<Self> {
        let (host, prefix) = (text("connect to the store", &at.host)?, text("connect to the store", &at.prefix)?);
        let at = RawRendezvous {
            host: host.as_ptr(),
            prefix: prefix.as_ptr(),
            timeout_ms: millis(at.timeout),
            port: at.port,
            server: at.server,
        };
        let mut raw = null_mut();
        // SAFETY: the texts live until the end of the call, `raw` is valid to write to, the answer goes to `answer` alone.
        unsafe { answer("connect to the store", ffi::dflash_store_connect(&raw const at, &raw mut raw))? };
        Ok(Self { raw })
    }

    /// Sets a key.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        let key = text("write to the store", key)?;
        // SAFETY: store, key and bytes are alive, the answer goes to `answer` alone.
        unsafe {
            answer("write to the store", ffi::dflash_store_set(self.raw, key.as_ptr(), value.as_ptr(), value.len()))
        }
    }

    /// Whether somebody has set a key, without waiting for it.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn has(&self, key: &str) -> Result<bool> {
        let key = text("look into the store", key)?;
        let mut there = false;
        // SAFETY: the store and the key are alive, `there` is valid to write to, the answer goes to `answer` alone.
        unsafe { answer("look into the store", ffi::dflash_store_has(self.raw, key.as_ptr(), &raw mut there))? };
        Ok(there)
    }

    /// Waits until somebody has set a key, and reads it: the first 4 KB of it.
    ///
    /// # Errors
    /// The connection is gone, or nobody has set it in time.
    pub fn get(&self, key: &str) -> Result<String> {
        let key = text("read from the store", key)?;
        let (mut bytes, mut count) = (vec![0; 4096], 0);
        // SAFETY: the store and the key are alive, `bytes` has as much room as said, `count` is valid to write to.
        unsafe {
            let (into, room) = (bytes.as_mut_ptr(), bytes.len());
            answer("read from the store", ffi::dflash_store_get(self.raw, key.as_ptr(), into, room, &raw mut count))?;
        }
        bytes.truncate(count);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: made by `dflash_store_connect`, freed once; groups that were made with it hold c10d's object themselves.
        unsafe { ffi::dflash_store_free(self.raw) };
    }
}

pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn text(doing: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| TorchError::Torch { doing, words: format!("{text:?} has a NUL in it") })
}
