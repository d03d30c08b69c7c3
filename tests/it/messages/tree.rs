//! Documents as trees that tests can change and write in different styles, well-formed or not.

use quick_xml::{Reader, events::Event};

/// An element; all texts as they stand in the document, escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Node>,
}

/// What an element holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Element(Element),
    /// Text, or any other markup.
    Raw(String),
}

/// How a tree is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) declaration: &'static str,
    /// What stands before each element that is not in a leaf.
    pub(crate) indent: Option<&'static str>,
    pub(crate) quote: char,
    pub(crate) reverse_attributes: bool,
}

/// As short as it gets.
pub(crate) const PLAIN: Style = Style {
    declaration: "",
    indent: None,
    quote: '"',
    reverse_attributes: false,
};

impl Element {
    /// The root of a document; comments, white space between elements and the prolog are left out.
    pub(crate) fn parse(text: &str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        let mut open = vec![Self::default()];
        loop {
            let event = reader.read_event().unwrap();
            let raw = match event {
                Event::Eof => break,
                Event::Start(start) => {
                    open.push(Self {
                        name: start.name().0.to_owned(),
                        attributes: start
                            .attributes()
                            .map(|attribute| {
                                let attribute = attribute.unwrap();
                                (attribute.key.0.to_owned(), attribute.value.into_owned())
                            })
                            .collect(),
                        children: Vec::new(),
                    });
                    continue;
                }
                Event::End(_) => {
                    let mut element = open.pop().unwrap();
                    element.drop_white_space();
                    open.last_mut()
                        .unwrap()
                        .children
                        .push(Node::Element(element));
                    continue;
                }
                Event::Text(text) => text.into_inner().into_owned(),
                Event::GeneralRef(reference) => format!("&{};", &*reference),
                _ => continue,
            };
            open.last_mut().unwrap().children.push(Node::Raw(raw));
        }
        let document = open.pop().unwrap();
        document.elements().next().unwrap().clone()
    }

    fn drop_white_space(&mut self) {
        if self.elements().next().is_some() {
            self.children
                .retain(|child| matches!(child, Node::Element(_)));
        }
    }

    pub(crate) fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|child| match child {
            Node::Element(element) => Some(element),
            Node::Raw(_) => None,
        })
    }

    /// The name without prefix.
    pub(crate) fn local_name(&self) -> &str {
        self.name
            .split_once(':')
            .map_or(&self.name, |(_, local)| local)
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.elements().next().is_none()
    }

    /// The text directly inside.
    pub(crate) fn raw_text(&self) -> String {
        let texts = self.children.iter().filter_map(|child| match child {
            Node::Raw(text) => Some(text.as_str()),
            Node::Element(_) => None,
        });
        texts.collect()
    }

    /// Sets the text directly inside, as markup.
    pub(crate) fn set_raw(&mut self, raw: &str) {
        self.children = vec![Node::Raw(raw.to_owned())];
    }

    /// The places of all elements below this one, each as the child numbers that lead there.
    pub(crate) fn places(&self) -> Vec<Vec<usize>> {
        let mut places = Vec::new();
        for (number, child) in self.children.iter().enumerate() {
            if let Node::Element(element) = child {
                places.push(vec![number]);
                for mut place in element.places() {
                    place.insert(0, number);
                    places.push(place);
                }
            }
        }
        places
    }

    pub(crate) fn at(&mut self, place: &[usize]) -> &mut Self {
        place.iter().fold(self, |element, &number| {
            match &mut element.children[number] {
                Node::Element(child) => child,
                Node::Raw(_) => panic!("no element there"),
            }
        })
    }

    /// Changes the name of this element and all below.
    pub(crate) fn rename_all(&mut self, rename: &impl Fn(&str) -> String) {
        self.name = rename(&self.name);
        for child in &mut self.children {
            if let Node::Element(element) = child {
                element.rename_all(rename);
            }
        }
    }

    pub(crate) fn to_xml(&self, style: Style) -> String {
        let mut out = style.declaration.to_owned();
        self.write(style, 0, &mut out);
        out
    }

    fn write(&self, style: Style, depth: usize, out: &mut String) {
        out.push('<');
        out.push_str(&self.name);
        let mut attributes: Vec<_> = self.attributes.iter().collect();
        if style.reverse_attributes {
            attributes.reverse();
        }
        let quote = style.quote;
        for (name, value) in attributes {
            out.push_str(&format!(" {name}={quote}{value}{quote}"));
        }
        out.push('>');
        for child in &self.children {
            match child {
                Node::Element(element) => {
                    break_line(style, depth + 1, out);
                    element.write(style, depth + 1, out);
                }
                Node::Raw(text) => out.push_str(text),
            }
        }
        if !self.is_leaf() {
            break_line(style, depth, out);
        }
        out.push_str(&format!("</{}>", self.name));
    }
}

fn break_line(style: Style, depth: usize, out: &mut String) {
    if let Some(indent) = style.indent {
        out.push_str(indent);
        out.push_str(&"\t".repeat(depth));
    }
}
