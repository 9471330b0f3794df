document.getElementById("report").textContent = document.getElementById("monet-data").textContent;
