//! `retrieval`: ranks the queries of some sets, writes the rankings down, and prints how good they are and what they
//! cost.

use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use retrieval::{
    baseline::{self, Baseline},
    floor::{self, Errors},
    measure::{self, Cost},
    places, ranked,
    score::{DEPTHS, Scores},
    set::Set,
};

/// Ranks the queries of sets with the index of the workbench: `target/retrieval/NAME.jsonl` gets the rankings, and
/// stdout the scores and what they cost.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Folders with tools.jsonl, servers.jsonl and queries.jsonl; our own set and the development sets if none is given
    folders: Vec<PathBuf>,
    /// Write what is reached into the baseline that the tests compare with
    #[arg(long)]
    accept: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "retrieval: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    if arguments.accept {
        return accept(&mut out);
    }
    if arguments.folders.is_empty() {
        report(&[places::own_set()], &mut out)?;
        let development = places::development_sets();
        if !development.is_empty() {
            writeln!(out)?;
            report(&development, &mut out)?;
        }
        return Ok(());
    }
    report(&arguments.folders, &mut out)
}

/// Ranks, scores and measures some sets.
fn report(folders: &[PathBuf], out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut averages = Vec::new();
    let mut costs = Vec::new();
    let mut floors = Vec::new();
    let depths = DEPTHS
        .map(|depth| format!("{:>10}", format!("recall@{depth}")))
        .concat();
    writeln!(
        out,
        "{:16} {:>7}{depths}{:>8}{:>8}{:>9}",
        "set", "queries", "hit@1", "mrr", "ndcg@10"
    )?;
    for folder in folders {
        let set = Set::read(&folder.canonicalize()?)?;
        let average = rank(&set, out)?;
        averages.push(average);
        floors.push((set.name.clone(), floor::errors(&set, &set.index())));
        costs.push((
            set.name.clone(),
            set.tools(),
            set.shelves.len(),
            measure::cost(&set),
        ));
    }
    if folders.len() > 1 {
        row(out, "macro average", "", Scores::average(averages))?;
    }
    writeln!(out)?;
    for (name, errors) in floors {
        writeln!(out, "{name}: {}", floor_words(&errors))?;
    }
    writeln!(out)?;
    for (name, tools, servers, cost) in costs {
        writeln!(
            out,
            "{name}: {tools} tools of {servers} servers, {}",
            words(&cost)
        )?;
    }
    Ok(())
}

/// Ranks the queries of a set, writes the run and prints the scores, also of each kind of query.
fn rank(set: &Set, out: &mut impl Write) -> Result<Scores, Box<dyn Error>> {
    let index = set.index();
    let mut lines = String::new();
    let mut scores: Vec<(&str, Scores)> = Vec::new();
    for question in &set.questions {
        let ranked = ranked(set, &index, &question.query);
        scores.push((&question.kind, Scores::of(question, &ranked)));
        lines.push_str(&serde_json::json!({"qid": question.qid, "ranked": ranked}).to_string());
        lines.push('\n');
    }
    fs::create_dir_all(places::runs())?;
    fs::write(places::runs().join(format!("{}.jsonl", set.name)), lines)?;
    let average = Scores::average(scores.iter().map(|(_, scores)| *scores));
    row(out, &set.name, &scores.len().to_string(), average)?;
    let mut kinds: Vec<&str> = scores.iter().map(|(kind, _)| *kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds.iter().filter(|_| kinds.len() > 1) {
        let of_kind = scores.iter().filter(|(other, _)| other == kind);
        let count = of_kind.clone().count().to_string();
        row(
            out,
            &format!("  {kind}"),
            &count,
            Scores::average(of_kind.map(|(_, scores)| *scores)),
        )?;
    }
    Ok(average)
}

fn row(out: &mut impl Write, name: &str, queries: &str, scores: Scores) -> io::Result<()> {
    let recall = scores
        .recall
        .map(|recall| format!("{recall:>10.3}"))
        .concat();
    let Scores {
        hit,
        reciprocal_rank,
        ndcg,
        ..
    } = scores;
    writeln!(
        out,
        "{name:16} {queries:>7}{recall}{hit:>8.3}{reciprocal_rank:>8.3}{ndcg:>9.3}"
    )
}

fn floor_words(errors: &Errors) -> String {
    let Errors {
        answered,
        refused,
        recall,
        recall_shown,
        unanswered,
        found,
        accepted,
    } = errors;
    let mut text = format!(
        "no good match for {refused} of {answered} answered queries, recall@5 {recall:.4} without the floor and \
         {recall_shown:.4} with it"
    );
    if *unanswered > 0 {
        text.push_str(&format!(
            "; of {unanswered} queries without an answer {found} have hits and {accepted} a good match"
        ));
    }
    text
}

fn words(cost: &Cost) -> String {
    let memory = cost.memory.map_or_else(String::new, |bytes| {
        format!(", {}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
    });
    let [again, worst] = cost.again;
    let [median, rare] = cost.query;
    let build = cost.build;
    format!(
        "index built in {build:.1?}{memory}, one server again in {again:.1?} (worst {worst:.1?}), query p50 {median:.1?}, p99 {rare:.1?}"
    )
}

/// Writes what is reached now into the baseline; that of the development sets stays where they are not there.
fn accept(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let path = places::baseline();
    let own = baseline::own()?;
    let development = match baseline::development()? {
        Some(reached) => reached,
        None => serde_json::from_str::<Baseline>(&fs::read_to_string(&path)?)?.development,
    };
    let text = serde_json::to_string_pretty(&Baseline { own, development })?;
    fs::write(&path, text.clone() + "\n")?;
    Ok(writeln!(out, "{}\n{text}", path.display())?)
}
