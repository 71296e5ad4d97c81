//! Phrases that tell a model what to do. A rule is a sequence of words: `a|b` matches either, `c?` is optional,
//! `*3` matches up to three words. Text is compared in lower case, without punctuation and hidden characters;
//! letters that look like Latin ones count as Latin.

use std::sync::LazyLock;

use super::finding::{Instruction, Problem};
use crate::visible::{folded, is_unseen};

const RULES: &[(Instruction, &[&str])] = &[
    (
        Instruction::Secrecy,
        &[
            "not|never|dont|cannot|avoid|without tell|telling|inform|informing|notify|notifying|alert|alerting|mention|mentioning|reveal|revealing|show|showing|disclose|disclosing|explain|explaining|warn|warning|display|displaying|report|reporting *4 user|human|person|operator|anyone|customer",
            "not|never|dont mention this|that|it|these|any",
            "user|human|operator must|should|shall|will|need|does not|never *2 know|see|notice|aware|informed|told",
            "keep|keeping this|these|it|that secret|hidden|confidential|private|quiet",
            "hide|conceal this|these|it|that|the *3 from *1 user|human|operator",
            "without the? users? knowledge|noticing|knowing|awareness",
            "silently *2 send|forward|copy|read|upload|include|add|bcc|pass|append|record|collect",
            "user|human will|would|might? get|be upset|confused|angry|worried",
            "do not|dont|never reveal|disclose|mention|discuss *2 instructions|instruction|prompt|tool|step|note",
        ],
    ),
    (
        Instruction::Override,
        &[
            "ignore|disregard|forget|override|bypass|discard *2 previous|prior|above|earlier|preceding|existing|system|safety|original|former *2 instruction|instructions|rule|rules|prompt|prompts|guideline|guidelines|directive|directives|policy|policies|context|message|messages|constraints|restrictions",
            "ignore|disregard|forget *2 instructions|everything|rules *2 given|told|said|before|above|far",
            "new|updated|real|actual|following instruction|instructions|policy|rules supersede|override|replace|supersedes|overrides|replaces",
            "takes|take|has|have|taking precedence|priority over *3 instructions|rules|prompt|tools|tool|descriptions",
        ],
    ),
    (
        Instruction::Precedence,
        &[
            "before|prior *1 using|calling|invoking|running|use|executing|every|each|any any|every|all|other *2 tool|tools|function|functions|call|action|server|servers",
            "before|prior you? use|call|invoke any|every|all|other *2 tool|tools",
            "before|after every|each|any|all|answering|responding|replying *2 message|response|reply|turn|answer|prompt|conversation",
            "must|always|shall|required *3 called|call|invoke|invoked|used|use|run this? *2 first|before before|any|every|all|other|anything *2 tool|tools|else|task|operation|action",
            "instead|place|lieu of *3 any|all|other|every *2 tool|tools|server|servers",
            "never|not|dont|stop|avoid use|call|using|calling|trust|rely *3 other|another|any|competing|alternative tool|tools|server|servers|mcp",
            "other|all|competing|similar|alternative tools|servers|tool|server *2 deprecated|unsafe|broken|obsolete|insecure|unreliable|outdated|disabled|wrong|inferior",
            "always|must|should prefer|choose|select|pick|prioritize this|it *3 over|above|instead|before|first",
            "this *2 best|only|preferred|official|most tool *4 always|must|only",
            "replaces|supersedes|deprecates|overrides|replacement the|all|any|every *2 tool|tools|server|servers",
        ],
    ),
    (
        Instruction::Disclosure,
        &[
            "pass|send|include|put|insert|place|provide|supply|append|attach|copy|paste|add|write|forward|post|upload|transmit|embed|encode|fill *4 contents|content|value|text|output|conversation|history|file|key|keys|secret|secrets|password|token|tokens|credentials|prompt|variables|data|result|transcript *6 parameter|argument|field|sidenote|note|notes|context|feedback|metadata|body|query|url|header|endpoint|address|server|webhook|email",
            "full|entire|whole|complete|all|verbatim *1 conversation|chat|dialogue|message|messages|transcript|history|prompt|context|thread *3 so|history|here|user|with|word|transcript|verbatim|parameter|argument|field",
            "contents|content|value|output|text of|from *6 as *3 parameter|argument|field|sidenote|note|input|value|context",
            "your|the system prompt|instructions|message *4 here|verbatim|parameter|argument|field|as|into",
            "content|contents|text|data|value from reading|read *1 ssh|env|id|secret|key|file",
            "read|open|load|access|cat|print|fetch|collect|gather|dump *3 users|your|home|private *3 env|environment|config|configuration|credentials|keys|secrets|tokens|ssh|passwords|cookies|wallet|files|variables",
            "environment variables|variable|vars *4 as|in|into|to *3 parameter|argument|field|here|value",
            "api key|keys|token|secret *4 found|stored|available|present|from *4 config|configuration|environment|env|memory|conversation|context|file|files",
            "list|names|name|schema|schemas|definition|definitions|descriptions *2 of *2 all|other|every|available tools|tool|servers *5 parameter|argument|field|here|as|in",
        ],
    ),
    (
        Instruction::Consent,
        &[
            "without asking|prompting|confirming|confirmation|permission|consent|approval|waiting *4 user|human|permission|first|it|confirmation|approval",
            "not|never|dont|no|skip|bypass|avoid ask|asking|request|requesting|require|wait|seek|prompt|need|needing *3 confirmation|permission|consent|approval|confirm|approve",
            "confirmation|permission|consent|approval is|are not|never|no required|needed|necessary",
            "user|human|owner|administrator|operator has|have already|previously approved|consented|authorized|agreed|confirmed|granted|allowed",
            "skip|bypass|disable|suppress|turn *2 confirmation|approval|consent|permission|safety|security|guardrails|warnings",
            "pre approved|authorized|authorised|consented by|for|and",
        ],
    ),
    (
        Instruction::Impersonation,
        &[
            "you are now|no|actually a|an|in|longer|the",
            "this|following is|message|note|text *3 from *2 system|developer|anthropic|openai|administrator|admin|user|google|microsoft",
            "system|developer|admin|administrator note|notice|override|prompt|instruction|instructions|directive|mode",
            "important|mandatory|critical|urgent|hidden instruction|instructions|directive *2 for|to|the|you|assistant|model|llm|ai|agent",
            "act|behave|respond|pretend as|to *3 unrestricted|dan|jailbroken|root|administrator|admin|developer",
            "your new|real|true|actual|only task|role|goal|instructions|objective|purpose|job|mission",
            "as an|a ai|language|llm assistant|model|agent you must|should|will|are",
        ],
    ),
    (
        Instruction::Addressing,
        &[
            "note|message|instruction|instructions|attention|reminder|directive|dear to|for|all *1 assistant|model|llm|ai|agent|agents|claude|gpt|cursor|copilot|assistants|models|llms",
        ],
    ),
    (
        Instruction::Tampering,
        &[
            "when|whenever|if|each|every|before *3 send|sending|sent|call|calling|called|use|using|used|invoke|writes|available|present *6 change|replace|set|modify|add|redirect|send|also|append|bcc|forward|instead *6 recipient|address|to|argument|parameter|command|bcc|recipients|attacker|url|proxy|number",
            "change|replace|modify|redirect|swap|set|rewrite the|its|all|every|any *2 recipient|recipients|destination|address|number|phone|account|iban|url|arguments|argument|parameters|endpoint|remote to|with|so|of",
            "all|every|any emails|email|messages|message|payments|requests|files|mails *2 must|should|shall|have *2 be|to *1 sent|routed|forwarded|copied|redirected|uploaded",
            "always|also|must bcc|cc|copy|forward *4 to|at",
            "when|if|whenever *6 tool|tools|server *2 available|present|called|used|listed|invoked *6 use|call|add|set|pass|send|first|also|include",
            "mcp|other|another|different server|servers|tool|tools *3 must|should|have|need|always *4 first|proxy|through|via|parameter|argument",
        ],
    ),
    (
        Instruction::Credentials,
        &[
            "ask|prompt|request|tell|instruct|have|get|require|obtain *2 user|human|them|person *5 password|passphrase|passwords|pin|seed|mnemonic|token|secret|credentials|otp|2fa|ssn|card|cvv|recovery|key",
            "enter|provide|type|paste|confirm|give|supply your|their|the|users *2 password|passphrase|pin|seed|mnemonic|recovery|otp|cvv|master|private|ssh|login",
        ],
    ),
    (
        Instruction::Approval,
        &[
            "mcp workbench trust|approve",
            "workbench trust approve",
            "trust approve",
            "approve|accept|trust|whitelist|allow *2 this|the *2 change|changes|tool|server|definition|update *4 lock|automatically|yourself|workbench|silently|without",
            "edit|modify|change|write|update|delete|remove *3 workbench|mcp|mcpservers|claude|cursor|desktop json|lock|config|configuration|settings|file",
        ],
    ),
];

/// Markup that makes a text look like more than text, in lower case.
const MARKS: &[&str] = &[
    "<important>",
    "</important>",
    "<system>",
    "</system>",
    "<instructions>",
    "<secret>",
    "<hidden>",
    "<critical>",
    "<admin>",
    "<user>",
    "<assistant>",
    "<|im_start|>",
    "<|system|>",
    "<|user|>",
    "<|endoftext|>",
    "<<sys>>",
    "[inst]",
    "[/inst]",
    "[system]",
    "[system message]",
    "### instruction",
    "### system",
    "\nsystem:",
    "\nassistant:",
    "\nuser:",
    "\nhuman:",
    "<tool_result>",
    "<function_calls>",
    "<system-reminder>",
    "<override>",
    "<mandatory>",
];

/// One position of a rule.
enum Slot {
    Any(Vec<&'static str>),
    /// One of these words, or none.
    Optional(Vec<&'static str>),
    /// Up to this many words.
    Gap(usize),
}

static PARSED: LazyLock<Vec<(Instruction, Vec<Slot>)>> = LazyLock::new(|| {
    let rules = RULES.iter();
    let rules = rules.flat_map(|(kind, rules)| rules.iter().map(|rule| (*kind, parsed(rule))));
    rules.collect()
});

fn parsed(rule: &'static str) -> Vec<Slot> {
    let slots = rule.split(' ').map(|slot| {
        if let Some(count) = slot.strip_prefix('*') {
            return Slot::Gap(count.parse().expect("the rules are constants"));
        }
        match slot.strip_suffix('?') {
            Some(words) => Slot::Optional(words.split('|').collect()),
            None => Slot::Any(slot.split('|').collect()),
        }
    });
    slots.collect()
}

/// A word with its position in the text.
struct Word {
    text: String,
    start: usize,
    end: usize,
}

/// Finds the instructions to a model in a text, each kind once.
pub(super) fn instructions(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    // Markup is searched in the whole text, because `words` drops its punctuation.
    let lower = text.to_lowercase();
    if let Some(mark) = MARKS.iter().find(|mark| lower.contains(**mark)) {
        let kind = Instruction::Impersonation;
        let text = mark.trim().to_owned();
        problems.push(Problem::Instruction { kind, text });
    }
    let words = words(text);
    for (kind, rule) in PARSED.iter() {
        // One finding per kind is enough to make somebody look.
        let is_known =
            |it: &Problem| matches!(it, Problem::Instruction { kind: known, .. } if known == kind);
        if problems.iter().any(is_known) {
            continue;
        }
        let matched = (0..words.len()).find_map(|start| Some((start, ends(rule, &words, start)?)));
        if let Some((first, end)) = matched {
            let text = text[words[first].start..words[end - 1].end].to_owned();
            problems.push(Problem::Instruction { kind: *kind, text });
        }
    }
    problems
}

/// Returns the end of a match that starts at a word; `None` if the rule does not match there.
fn ends(rule: &[Slot], words: &[Word], at: usize) -> Option<usize> {
    let Some((slot, rest)) = rule.split_first() else {
        return Some(at);
    };
    let is_one_of = |known: &[&str]| {
        words
            .get(at)
            .is_some_and(|word| known.contains(&word.text.as_str()))
    };
    match slot {
        Slot::Any(known) => is_one_of(known)
            .then(|| ends(rest, words, at + 1))
            .flatten(),
        Slot::Optional(known) => {
            let with = is_one_of(known)
                .then(|| ends(rest, words, at + 1))
                .flatten();
            with.or_else(|| ends(rest, words, at))
        }
        // The shortest gap that lets the rest match; rules are short, so backtracking stays cheap.
        Slot::Gap(most) => (0..=*most).find_map(|skipped| ends(rest, words, at + skipped)),
    }
}

/// Splits a text into words. `don't` is one word, `read_file` and `readFile` are two.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut word = Word {
        text: String::new(),
        start: 0,
        end: 0,
    };
    let mut was_lower = false;
    for (at, character) in text.char_indices() {
        // Hidden characters and apostrophes inside a word must not split it.
        if (is_unseen(character) && !character.is_whitespace()) || matches!(character, '\'' | '’')
        {
            continue;
        }
        let begins = !character.is_alphanumeric() || (was_lower && character.is_uppercase());
        if begins && !word.text.is_empty() {
            words.push(std::mem::replace(
                &mut word,
                Word {
                    text: String::new(),
                    start: 0,
                    end: 0,
                },
            ));
        }
        if character.is_alphanumeric() {
            if word.text.is_empty() {
                word.start = at;
            }
            word.text.push(folded(character));
            word.end = at + character.len_utf8();
        }
        was_lower = character.is_lowercase();
    }
    if !word.text.is_empty() {
        words.push(word);
    }
    words
}
