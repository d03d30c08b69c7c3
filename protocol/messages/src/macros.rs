//! The tables' machinery: one line per child element makes field, reading and writing.

/// Start and end tag of an element.
macro_rules! tags {
    ($name:expr) => {
        $crate::xml::writer::Tags {
            start: concat!("<", $name, ">"),
            end: concat!("</", $name, ">"),
        }
    };
}

/// Serde writes a type as its text.
macro_rules! serde_as_text {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A closed enumeration of the schema.
macro_rules! enumeration {
    (
        $(#[$doc:meta])*
        $name:ident, $expected:literal {
            $( $(#[$variant_doc:meta])* $variant:ident = $text:literal, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$variant_doc])* $variant, )*
        }

        impl $name {
            /// Every value, in schema order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The schema's spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $text, )*
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::enums::UnknownValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $( $text => Ok(Self::$variant), )*
                    _ => Err($crate::enums::UnknownValue::new(text, $expected)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        serde_as_text! { $name }

        #[cfg(test)]
        impl $crate::sample::Sample for $name {
            fn sample(source: &mut $crate::sample::Source) -> Self {
                source.pick(Self::ALL)
            }
        }
    };
}

/// The Rust type of a child element that comes once, at most once, or any number of times.
macro_rules! child_type {
    (required $type:ty) => { $type };
    (optional $type:ty) => { Option<$type> };
    (repeated $type:ty) => { Vec<$type> };
}

/// The file that a child element names.
macro_rules! child_file {
    (required $child:expr) => {
        $crate::xml::content::Content::file(&$child)
    };
    (optional $child:expr) => {
        $child
            .as_ref()
            .and_then($crate::xml::content::Content::file)
    };
    (repeated $child:expr) => {
        None
    };
}

/// Elements that hold a fixed sequence of child elements.
macro_rules! elements {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $( $(#[$field_doc:meta])* $field:ident: $card:ident $type:ty = $element:literal, )*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: child_type!($card $type), )*
        }

        impl $crate::xml::content::Content for $name {
            fn read(reader: &mut $crate::xml::reader::Reader<'_>) -> $crate::xml::reader::Read<Self> {
                let content = Self { $( $field: reader.$card($element)?, )* };
                reader.expect_end()?;
                Ok(content)
            }

            fn write(&self, writer: &mut $crate::xml::writer::Writer) {
                $( writer.$card(tags!($element), &self.$field); )*
            }
        }

        #[cfg(test)]
        impl $crate::sample::Sample for $name {
            fn sample(source: &mut $crate::sample::Source) -> Self {
                Self { $( $field: $crate::sample::$card(source), )* }
            }
        }
    )*};
}

/// Message types: the header, then what requests or responses have in common, then the children of the table.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        $base:ident $name:ident {
            $( $(#[$field_doc:meta])* $field:ident: $card:ident $type:ty = $element:literal, )*
        }
    )*) => {$(
        messages! { @$base
            [$(#[$doc])*] $name
            { $( [$(#[$field_doc])*] $field $card ($type) $element, )* }
        }
    )*};
    (@request [$($doc:tt)*] $name:ident { $($children:tt)* }) => {
        messages! { @build
            [$($doc)*] $name
            (None)
            {
                [#[doc = "What the receiver shall note in its audit trail (element `AuditTrailInformation`)."]]
                audit_trail_information optional (String) "AuditTrailInformation",
                $($children)*
            }
        }
    };
    (@response [$($doc:tt)*] $name:ident { $($children:tt)* }) => {
        messages! { @build
            [$($doc)*] $name
            (response_info)
            {
                [#[doc = "How it went (element `ResponseInfo`)."]]
                response_info required ($crate::header::ResponseInfo) "ResponseInfo",
                $($children)*
            }
        }
    };
    (@plain [$($doc:tt)*] $name:ident { $($children:tt)* }) => {
        messages! { @build [$($doc)*] $name (None) { $($children)* } }
    };
    (@build
        [$(#[$doc:meta])*] $name:ident
        ($response:ident)
        { $( [$(#[$field_doc:meta])*] $field:ident $card:ident ($type:ty) $element:literal, )* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            /// What every message has.
            pub header: $crate::header::Header,
            $( $(#[$field_doc])* pub $field: child_type!($card $type), )*
        }

        impl $crate::message::Body for $name {
            fn read(
                reader: &mut $crate::xml::reader::Reader<'_>,
                header: $crate::header::Header,
            ) -> $crate::xml::reader::Read<Self> {
                Ok(Self { header, $( $field: reader.$card($element)?, )* })
            }

            fn write(&self, writer: &mut $crate::xml::writer::Writer) {
                self.header.write(writer);
                $( writer.$card(tags!($element), &self.$field); )*
            }

            fn response_info(&self) -> Option<&$crate::header::ResponseInfo> {
                messages!(@info self $response)
            }

            fn file_id(&self) -> Option<&$crate::ids::FileId> {
                None $( .or_else(|| child_file!($card self.$field)) )*
            }
        }

        #[cfg(test)]
        impl $crate::sample::Sample for $name {
            fn sample(source: &mut $crate::sample::Source) -> Self {
                Self {
                    header: $crate::sample::required(source),
                    $( $field: $crate::sample::$card(source), )*
                }
            }
        }
    };
    (@info $self:ident None) => { None };
    (@info $self:ident $field:ident) => { Some(&$self.$field) };
}
