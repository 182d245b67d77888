const commits = await github.listCommits({limit: 1000});
const recent = commits.filter(commit => isLastWeek(commit.date));
return {total: recent.length, authors: new Set(recent.map(commit => commit.author)).size};
